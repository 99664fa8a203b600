"""Text helpers that the tools share: encodings, line ends, truncation, paths, whole files."""
