"""What edits and commands did to files, told apart from a person's own work, so that it can be undone."""
