"""Arguments only: one file per command group, nothing heavy at module level."""
