"""A file that was dragged onto the terminal arrives as its pasted path: it becomes a mention."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent.ui.entry.completion import mention

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp")
_LONGEST_PATH = 4096


def dropped_file(pasted: str, workspace: Path) -> str:
    """The mention of the file that `pasted` is the path of; empty where it is anything else.

    Only absolute paths count, which people hardly ever paste to have them read as a text: those of files in
    the workspace, and of images anywhere.
    """
    text = pasted.strip()
    if not text or "\n" in text or len(text) > _LONGEST_PATH:
        return ""
    path = _path_in(text)
    if path is None:
        return ""
    try:
        is_inside = path.is_relative_to(workspace)
        if not path.exists() or not (is_inside or path.suffix.lower() in PICTURE_SUFFIXES):
            return ""
    except (OSError, ValueError):
        return ""
    name = path.relative_to(workspace).as_posix() if is_inside else path.as_posix()
    return f"{mention(name)} " if name != "." else ""


def _path_in(text: str) -> Path | None:
    """Terminals quote a dragged path, or escape what a shell would take apart, or give a URL."""
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    elif len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    elif "\\ " in text or "\\(" in text:
        text = text.replace("\\", "")
    path = Path(text)
    return path if path.is_absolute() else None
