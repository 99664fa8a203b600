"""What the main screen is made of."""
