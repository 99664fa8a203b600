"""What stands in an empty conversation."""

from pathlib import Path

from textual.content import Content


def welcome(workspace: Path) -> Content:
    """The folder that is worked in."""
    return Content.assemble(("agent", "bold $text"), "  ", (_short(workspace), "$quiet"))


def _short(path: Path) -> str:
    try:
        home = Path.home()
    except RuntimeError:
        return str(path)
    return f"~/{path.relative_to(home)}" if path != home and path.is_relative_to(home) else str(path)
