"""Measures servers: the same prompts to each of them, figures from the server where it has them."""
