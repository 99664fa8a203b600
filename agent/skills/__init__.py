"""What people wrote for models to use again: Agent Skills and custom commands."""
