"""Screens that cover the conversation for a while."""
