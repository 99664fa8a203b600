"""Sessions on disk: the record of events, the originals of changed files, and undo."""
