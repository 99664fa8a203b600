"""Decides what a tool call may do. Start at `agent.permissions.gate.decide`."""
