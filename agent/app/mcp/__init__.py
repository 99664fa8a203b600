"""The MCP servers of a session: connected, offered to the model and to the person, administered."""
