"""Commands of the person's that run at certain points of a session, and may block what is about to happen."""
