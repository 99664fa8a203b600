"""What a turn works with: conversation, tools, limits, sub-agents, the first message."""
