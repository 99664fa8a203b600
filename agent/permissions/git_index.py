"""Which files git has in its index, as far as that can be told without running git."""

import os
from dataclasses import dataclass
from pathlib import Path

from agent.core.regular_file import read_regular

NAMES_ARE_WHOLE = (2, 3)  # the versions of an index that does not shorten names by those before
_LARGEST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class GitIndex:
    """`data` is None where it cannot be told, so that any file may be in it."""

    root: Path
    data: bytes | None

    def may_have(self, path: str) -> bool:
        """Whether a file may be in the index; a real path below the root of the repository."""
        if self.data is None:
            return True
        return os.fsencode(os.path.relpath(path, self.root)) + b"\0" in self.data


def read_index(folder: Path) -> GitIndex:
    """The index of the repository that a folder lies in.

    Format: gitformat-index(5). An index that is split or shortens names says nothing.
    """
    for root in (folder, *folder.parents):
        place = root / ".git"
        if place.is_dir():
            return GitIndex(root, _data(place / "index"))
        if place.is_file():
            return GitIndex(root, None)  # a worktree or submodule has it elsewhere
    return GitIndex(folder, None)


def _data(index: Path) -> bytes | None:
    try:
        data = read_regular(index, _LARGEST_BYTES)
    except FileNotFoundError:
        return b""
    except OSError:
        return None
    is_plain = data[:4] == b"DIRC" and int.from_bytes(data[4:8], "big") in NAMES_ARE_WHOLE
    return data if is_plain and b"link" not in data[-4096:] else None
