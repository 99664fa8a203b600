"""What stands behind the input field, as plain logic: history, drafts, pastes, completion."""
