"""Finding the text that a model wants replaced. Pure functions on strings."""
