"""Random attacks on what must not go wrong, with an oracle that knows what may change."""
