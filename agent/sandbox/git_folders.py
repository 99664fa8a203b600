"""Which folders git needs for a workspace, and what in them can name programs. Reads files, never runs git.

The folder of a worktree or submodule lies outside of it and is named by a file that a command could have
changed. It only counts where the other side agrees.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.core.regular_file import read_regular

_MOST_MODULES = 200
_NAMES_PROGRAMS = ("hooks", "config", "config.worktree", "info/attributes")


@dataclass(frozen=True, slots=True)
class GitFolders:
    """`writable` are folders of git's own; `kept` is what can make git start a program.

    `root` is the folder of the files, of which the workspace may be a part; git would take files that it
    cannot see for deleted ones.
    """

    root: Path | None = None
    writable: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()


def git_folders(workspace: Path) -> GitFolders:
    """The folders of the repository that `workspace` (a real path) is in; none where there is none."""
    for folder in (workspace, *workspace.parents):
        link = folder / ".git"
        try:
            if link.is_symlink():
                return GitFolders()
            if link.is_dir():
                if not _is_git_folder(link):
                    return GitFolders()
                return GitFolders(folder, (link,), tuple(_kept_in(link)))
            if link.is_file():
                return _of_link(link)
        except OSError:
            return GitFolders()
    return GitFolders()


def _of_link(link: Path) -> GitFolders:
    """For a `.git` that is a file: a worktree or a submodule."""
    target = _named_in(link, link.parent, "gitdir:")
    if target is None or not _is_git_folder(target):
        return GitFolders(kept=(link,))
    common = _named_in(target / "commondir", target, "")
    if common is not None:
        back = _named_in(target / "gitdir", target, "")
        agrees = back == link and target.parent == common / "worktrees" and _is_git_folder(common)
        return (
            GitFolders(link.parent, (common,), (link, *_kept_in(common), *_kept_in(target)))
            if agrees
            else GitFolders(kept=(link,))
        )
    for parent in link.parent.parents:
        modules = Path(os.path.realpath(parent / ".git" / "modules"))
        if modules in target.parents:
            return GitFolders(link.parent, (target,), (link, *_kept_in(target)))
    return GitFolders(kept=(link,))


def _kept_in(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in _NAMES_PROGRAMS)
    for number, inner in enumerate(_inner(folder / "modules", depth=4)):
        if number >= _MOST_MODULES:
            return
        yield from (inner / name for name in _NAMES_PROGRAMS)
    yield from (inner / "config.worktree" for inner in _folders(folder / "worktrees"))


def _inner(folder: Path, depth: int) -> Iterator[Path]:
    """The git folders of submodules, whose names may have slashes in them."""
    for inner in _folders(folder):
        if _is_git_folder(inner):
            yield inner
            yield from _inner(inner / "modules", depth - 1) if depth else ()
        elif depth:
            yield from _inner(inner, depth - 1)


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink())
    except OSError:
        return []


def _named_in(file: Path, base: Path, prefix: str) -> Path | None:
    try:
        text = read_regular(file).decode("utf-8", "surrogateescape")[:8192].strip()
    except OSError:
        return None
    if not text.startswith(prefix) or "\0" in text:
        return None
    return Path(os.path.realpath(base / text.removeprefix(prefix).strip()))


def _is_git_folder(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and ((folder / "objects").is_dir() or (folder / "commondir").is_file())
