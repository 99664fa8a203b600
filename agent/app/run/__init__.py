"""`agent run`: one recorded session that nobody watches, from the task to the exit code."""
