"""The text that the model sees for a tool, kept next to the tool's code."""

from pathlib import Path


def description_of(name: str) -> str:
    """Content of `<name>.md` in this folder."""
    return Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8").strip()
