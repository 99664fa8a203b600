"""What is known about a repository at one moment. No process runs here."""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SHORT_COMMIT = 10
"""So many characters of a commit are shown in place of a branch."""

_MOST_HASHED_FILES = 2_000
_MOST_HASHED_BYTES = 64 * 1024 * 1024
_LARGEST_HASHED_FILE = 16 * 1024 * 1024

# Files in git's own folder that exist while an operation waits to be continued, see gitrepository-layout(5).
_OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


@dataclass(frozen=True, slots=True)
class DirtyPath:
    """A path, from the repository's root, that differs from the last commit.

    `staged`: the index differs from the commit. `unstaged`: the work tree differs from the index.
    """

    path: str
    staged: bool = False
    unstaged: bool = False
    untracked: bool = False
    conflicted: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """`git status --porcelain=v2 --branch` as data. `head` is None before the first commit."""

    head: str | None
    branch: str | None
    dirty: tuple[DirtyPath, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoState:
    """The repository around a folder, or one line on why there is none to work with.

    `problem` is empty when everything could be found out. `root` is the top of the work tree and
    `git_dir` git's own folder for it; `common_dir` differs from that in a linked work tree. `branch` is
    None on a detached head, `head` is None before the first commit. `operation` names a merge, rebase or
    the like that is in progress. `fingerprints` has a mark for the content of each dirty path.
    """

    workspace: Path
    problem: str = ""
    is_repo: bool = False
    root: Path = field(default=Path())
    git_dir: Path = field(default=Path())
    common_dir: Path = field(default=Path())
    branch: str | None = None
    head: str | None = None
    is_bare: bool = False
    operation: str = ""
    dirty: tuple[DirtyPath, ...] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    @property
    def branch_or_commit(self) -> str:
        """The branch, or the beginning of the commit on a detached head; empty without a repository."""
        return ((self.branch or (self.head or "")[:SHORT_COMMIT]) if self.is_repo else "") or ""

    @property
    def is_detached(self) -> bool:
        return self.is_repo and not self.is_bare and self.branch is None

    def dirty_paths(self) -> tuple[Path, ...]:
        """Absolute paths of what differs from the last commit."""
        return tuple(self.root / entry.path for entry in self.dirty)


def parse_status(output: bytes) -> Status:
    """Reads `git status --porcelain=v2 --branch -z`, see git-status(1)."""
    head: str | None = None
    branch: str | None = None
    dirty: list[DirtyPath] = []
    fields = iter(output.split(b"\0"))
    for line in fields:
        kind, _, rest = os.fsdecode(line).partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            if name == "branch.oid" and value != "(initial)":
                head = value
            elif name == "branch.head" and value != "(detached)":
                branch = value
        elif kind == "?":
            dirty.append(DirtyPath(rest, untracked=True))
        elif kind == "u":
            dirty.append(DirtyPath(rest.split(" ", 9)[9], staged=True, unstaged=True, conflicted=True))
        elif kind in ("1", "2"):
            parts = rest.split(" ", 8 if kind == "2" else 7)
            dirty.append(DirtyPath(parts[-1], staged=parts[0][0] != ".", unstaged=parts[0][1] != "."))
            if kind == "2":
                next(fields, b"")  # the old name of a rename
    return Status(head, branch, tuple(dirty))


def operation_in(git_dir: Path) -> str:
    """The name of the operation that waits to be continued, or an empty string."""
    return next((name for file, name in _OPERATIONS.items() if os.path.lexists(git_dir / file)), "")


def fingerprints(root: Path, dirty: Iterable[DirtyPath]) -> dict[str, str]:
    """A mark for each dirty path that changes when its content does.

    The first 2,000 files and 64 MiB are hashed; beyond that, and for files over 16 MiB, the mark is made of
    size and times, which is as much as git itself looks at.
    """
    marks: dict[str, str] = {}
    files, room = 0, _MOST_HASHED_BYTES
    for entry in dirty:
        path = root / entry.path
        size = _size_of(path)
        hashed = files < _MOST_HASHED_FILES and size <= min(room, _LARGEST_HASHED_FILE)
        if hashed:
            files, room = files + 1, room - size
        marks[entry.path] = mark_of(path, hashed=hashed)
    return marks


def has_changed(root: Path, path: str, mark: str) -> bool:
    """Whether the content of `path` is another than when `mark` was taken."""
    return mark_of(root / path, hashed=not mark.startswith("stat ")) != mark


def mark_of(path: Path, *, hashed: bool) -> str:
    """A word for what `path` is now: by content if `hashed`, else by size and times."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return f"link {path.readlink()}"
        if not stat.S_ISREG(status.st_mode):
            return "other"
        if not hashed:
            return f"stat {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return f"file {stat.S_IMODE(status.st_mode) & 0o111:o} {digest}"
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError:
        return "unreadable"


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
