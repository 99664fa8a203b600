"""Live sessions, which a person or an editor talks to: their parts, and the way that events take in them."""
