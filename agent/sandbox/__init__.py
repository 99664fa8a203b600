"""Keeps commands in the workspace: bubblewrap or Landlock on Linux, seatbelt on macOS."""
