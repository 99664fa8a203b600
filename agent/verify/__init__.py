"""Telling whether the work is done: the check command of a task, and what its output says."""
