"""A coding assistant for people who run their own model."""

__version__ = "0.1.0"
