"""`agent bench` and `agent tune`: servers of profiles, measured and compared."""
