"""`agent run a.md b.md …`: several tasks, each in a work tree and on a branch of its own."""
