"""The files below a folder, up to a number."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from agent.core.regular_file import read_regular
from agent.permissions.words import names

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_ENTRIES = 5_000
_LARGEST_IGNORE_BYTES = 1_000_000
INSTALLED = names(
    ".git .hg .svn node_modules .venv venv site-packages __pycache__ .tox .nox .mypy_cache .ruff_cache"
    " .pytest_cache vendor target"
)
"""Folders of what others published, or of what is made again: keys in there are no secrets of anybody's."""


@dataclass(slots=True)
class Walk:
    """Looks at no more than `left` entries in all; `is_cut` when there were more."""

    left: int = MOST_ENTRIES
    is_cut: bool = False

    def files(self, folder: str, skipped: frozenset[str] = frozenset()) -> Iterator[os.DirEntry[str]]:
        """All that is no folder, level by level. Links to folders are not followed."""
        folders = [folder]
        while folders:
            following: list[str] = []
            for each in folders:
                for entry in _entries(each):
                    if self.left <= 0:
                        self.is_cut = True
                        return
                    self.left -= 1
                    if not entry.is_dir(follow_symlinks=False):
                        yield entry
                    elif entry.name not in skipped:
                        following.append(entry.path)
            folders = following


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def is_ignored(path: Path, workspace: Path) -> bool:
    """Whether `.gitignore` files of the workspace leave the file, or a folder above it, out."""
    try:
        parts = path.relative_to(workspace).parts
    except ValueError:
        return False
    specs: list[tuple[int, GitIgnoreSpec]] = []
    for depth in range(len(parts)):
        spec = _spec(workspace.joinpath(*parts[:depth]))
        if spec is not None:
            specs.append((depth, spec))
        ending = "/" if depth < len(parts) - 1 else ""
        for above, each in reversed(specs):
            name = PurePosixPath(*parts[above : depth + 1]).as_posix() + ending
            verdict = each.check_file(name).include
            if verdict:
                return True
            if verdict is not None:
                break
    return False


def _spec(folder: Path) -> "GitIgnoreSpec | None":
    try:
        text = read_regular(folder / ".gitignore", _LARGEST_IGNORE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    from pathspec import GitIgnoreSpec  # only a line that reads a whole folder with secrets needs it

    return GitIgnoreSpec.from_lines(text.split("\n"))
