"""Child processes that cannot outlive their welcome."""
