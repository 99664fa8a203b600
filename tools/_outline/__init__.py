"""What is defined where in a tree of sources, and what of it matters most."""
