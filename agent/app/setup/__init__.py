"""`agent setup`: looks at the machine, proposes an engine and a profile, and does it step by step."""
