"""Text helpers that the tools share: encodings, truncation, paths, listings."""
