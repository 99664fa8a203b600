"""Does anything get damaged, lost or past the rules? Counts over many generated cases."""
