"""The repository that the work happens in: git, file listing, mentioned files."""
