"""From a path that a model wrote to a file inside the workspace."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from agent.core.likeness import alike
from agent.core.tool import ToolContext

SKIPPED_FOLDERS = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".venv",
        "__pycache__",
        "node_modules",
    }
)
"""Folders that nobody wants to see listed or searched, ignore file or not."""

_NAMES_COMPARED = 5000
_SUGGESTIONS = 3


class RefusalError(Exception):
    """A call that cannot be carried out; the text tells the model why and what to do next."""


def resolve(context: ToolContext, given: str, *also: Path) -> Path:
    """The absolute path, symlinks and `..` followed, of a path written by a model.

    Args:
        context: its workspace is what relative paths start from and what the result lies in.
        given: the path as written; surrounding spaces and quotes are dropped.
        also: further folders that the result may lie in.

    Raises:
        RefusalError: the path is empty, impossible or leads out of the workspace, or to another file than
            when the permissions were asked.
    """
    workspace = context.workspace
    cleaned = given.strip().strip("'\"`")
    if not cleaned:
        raise RefusalError("path is empty. Give a path such as src/main.py.")
    try:
        path = (workspace / cleaned).resolve()
    except (OSError, RuntimeError, ValueError):
        raise RefusalError(f"{given!r} is not a possible path. Write one such as src/main.py.") from None
    _require_slashes(given, cleaned, path)
    if any(path.is_relative_to(folder) for folder in (workspace, *(folder.resolve() for folder in also))):
        if context.judged is not None and str(path) not in context.judged:
            raise RefusalError(f"{given} leads to another file now than when it was allowed. Call again.")
        return path
    inside = _same_tail_inside(workspace, cleaned)
    advice = (
        f"Did you mean {inside}?" if inside else "Use a path relative to the workspace, such as src/main.py."
    )
    raise RefusalError(f"{given} is outside the workspace. {advice}")


def _require_slashes(given: str, cleaned: str, path: Path) -> None:
    """Refuses a path as Windows has them, which would be one odd name here; a file that has it is meant."""
    if os.sep != "/" or "\\" not in cleaned or path.exists():
        return
    if re.match(r"[A-Za-z]:\\", cleaned):
        raise RefusalError(f"{given} is a path of Windows. Use one relative to the workspace.")
    meant = cleaned.replace("\\ ", " ").replace("\\", "/")
    raise RefusalError(f"{given} has backslashes. Write it as {meant}.")


def shown(workspace: Path, path: Path) -> str:
    """The path as the model should write it."""
    return path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else path.as_posix()


def require_no_second_root(workspace: Path, path: Path) -> None:
    """Refuses a file that would be new where a small model has put the workspace's own name before its path.

    Raises:
        RefusalError: names the file that is probably meant.
    """
    first, *rest = path.relative_to(workspace).parts or ("",)
    if not rest or first != workspace.name or (workspace / first).exists():
        return
    meant = Path(*rest)
    if (workspace / meant).is_file():
        raise RefusalError(
            f"You are in {first} already, and {meant.as_posix()} exists: did you mean {meant.as_posix()}? "
            f"If you want a folder {first} inside {first}, make it first."
        )


def missing(workspace: Path, path: Path) -> RefusalError:
    """The refusal for a path that does not exist, with the names that come closest."""
    names = closest_names(workspace, path)
    advice = f"Closest: {', '.join(names)}." if names else "Use glob to see which files there are."
    return RefusalError(f"{shown(workspace, path)} does not exist. {advice}")


def closest_names(workspace: Path, path: Path) -> list[str]:
    """Up to three existing files: the same name elsewhere first, then similar names."""
    wanted = shown(workspace, path)
    known = list(_some_files(workspace))
    same_name = [name for name in known if name.rpartition("/")[2].lower() == path.name.lower()]
    similar = alike(wanted, known, most=_SUGGESTIONS)
    by_name = {name.rpartition("/")[2]: name for name in reversed(known)}
    similar_name = [by_name[name] for name in alike(path.name, by_name, most=_SUGGESTIONS)]
    return list(dict.fromkeys(same_name + similar + similar_name))[:_SUGGESTIONS]


def reason(error: OSError) -> str:
    """What the operating system says, without the number and the path."""
    return (error.strerror or type(error).__name__).lower()


def _some_files(workspace: Path) -> Iterator[str]:
    left = _NAMES_COMPARED
    for folder, folders, files in os.walk(workspace):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        base = Path(folder)
        for name in sorted(files):
            yield shown(workspace, base / name)
            left -= 1
            if not left:
                return


def _same_tail_inside(workspace: Path, given: str) -> str | None:
    """Models like to write /src/main.py or /home/user/project/src/main.py."""
    parts = [part for part in Path(given).parts if part not in ("/", "..", "~")]
    for first in range(len(parts)):
        candidate = Path(*parts[first:])
        try:
            if (workspace / candidate).exists():
                return candidate.as_posix()
        except (OSError, ValueError):
            return None
    return None
