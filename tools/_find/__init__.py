"""Finding files and text in them, past everything that is ignored."""
