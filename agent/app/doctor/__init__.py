"""`agent doctor`: looks at everything that a session needs, and says for each finding what to do."""
