"""What a person can have done in a live session beside its turns: undo, another profile, a question aside."""
