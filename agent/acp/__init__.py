"""Serves sessions to editors by the Agent Client Protocol. Knows `agent.core` and the protocol's library."""
