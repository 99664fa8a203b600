"""The turn loop and its vocabulary. Knows no user interface, server, tool or git."""
