"""What stands in an empty conversation."""

from pathlib import Path

from textual.content import Content

_HINTS = (("/", "commands"), ("@", "files"), ("!", "shell"), ("Shift+Tab", "permission mode"), ("F1", "help"))


def welcome(workspace: Path) -> Content:
    """The folder, and the few keys that lead to everything else."""
    hints = Content("   ").join(
        Content.assemble((key, "bold $text-primary"), " ", (what, "$quiet")) for key, what in _HINTS
    )
    return Content.assemble(("agent", "bold $text"), "  ", (_short(workspace), "$quiet"), "\n\n", hints)


def _short(path: Path) -> str:
    try:
        home = Path.home()
    except RuntimeError:
        return str(path)
    return f"~/{path.relative_to(home)}" if path != home and path.is_relative_to(home) else str(path)
