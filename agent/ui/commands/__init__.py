"""Slash commands as data: what each is called, what it does and how it is done."""
