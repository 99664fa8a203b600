"""The terminal interface: shows the events of a session handle and sends it what a person does."""
