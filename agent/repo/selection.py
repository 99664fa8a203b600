"""Which of the files that a run changed can be committed without touching a person's own work."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.repo.state import DirtyPath, RepoState


def sort_out(
    state: RepoState,
    paths: Sequence[Path],
    dirty_before: Sequence[Path],
    ask_ignored: Callable[[Sequence[str]], set[str]],
) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """The names that can be committed as they are, and the others with a reason each.

    `ask_ignored` tells which of some names git ignores.
    """
    theirs = {name_in(state, path) for path in dirty_before}
    dirty: dict[str, list[DirtyPath]] = {}
    for entry in state.dirty:
        dirty.setdefault(entry.path, []).append(entry)
    names = {str(path): name_in(state, path) for path in paths}
    own = {name for name in names.values() if name and not is_nested(state.root, name)}
    ignored = ask_ignored(sorted(own - dirty.keys()))
    wanted: dict[str, None] = {}
    skipped: dict[str, str] = {}
    for given, name in sorted(names.items()):
        if name is None:
            skipped[given] = "it is outside of the repository"
        elif name not in own:
            skipped[name] = "it belongs to another repository inside this one"
        elif name in theirs:
            skipped[name] = "it had uncommitted changes of yours before"
        elif name in ignored:
            skipped[name] = "git ignores it"
        elif reason := _why_skip(state.root / name, dirty.get(name, [])):
            skipped[name] = reason
        else:
            wanted[name] = None
    return list(wanted), tuple(skipped.items())


def _why_skip(path: Path, entries: Sequence[DirtyPath]) -> str:
    if not entries:
        return "it is as in the last commit"
    if any(entry.conflicted for entry in entries):
        return "it has merge conflicts"
    differs_from_index = any(entry.unstaged or entry.untracked for entry in entries)
    if differs_from_index and any(entry.staged for entry in entries):
        return "you have staged another version of it"
    if is_folder(path) and any(entry.untracked for entry in entries):
        return "it is a folder"
    return ""


def is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def is_nested(root: Path, name: str) -> bool:
    """Whether a path lies in a submodule or in a repository that was cloned into this one."""
    folders = [root / name, *(root / name).parents]
    return any(os.path.lexists(folder / ".git") for folder in folders[: folders.index(root)])


def name_in(state: RepoState, path: Path) -> str | None:
    """The name of `path` from the repository's root, or None if it is not among the repository's files."""
    entry = state.root / path
    entry = entry.resolve() if entry.name == ".." else entry.parent.resolve() / entry.name
    if not entry.is_relative_to(state.root) or entry == state.root:
        return None
    name = entry.relative_to(state.root)
    return None if name.parts[0] == ".git" else name.as_posix()
