"""The folder of a session's sandbox, and what becomes of those whose program was killed.

A lock on a file in it says that somebody still uses it. The kernel lets go of the lock when the program is
gone, however that happened.
"""

import fcntl
import os
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PREFIX = "agent-sandbox-"
OWNER_NAME = "owner"
_UNOWNED_SECONDS = 24 * 3600.0
"""So old is a folder without an owner's file at least before it counts as left behind."""


class SessionFolder:
    """Exists until `remove`, or as long as this object. Raises OSError where it cannot be made."""

    def __init__(self, parent: Path | None = None) -> None:
        self.path, descriptor = _owned(parent or Path(tempfile.gettempdir()))
        self._finish = weakref.finalize(self, _let_go, self.path, descriptor)

    def remove(self) -> None:
        self._finish()


def remove_abandoned(parent: Path | None = None) -> list[Path]:
    """Removes the folders of this user whose owners are dead; returns them. Waits for the disk."""
    removed = []
    for folder in _own_folders(parent or Path(tempfile.gettempdir())):
        descriptor = _taken_over(folder)
        if descriptor is None:
            continue
        _let_go(folder, descriptor)
        removed.append(folder)
    return removed


def _owned(parent: Path) -> tuple[Path, int]:
    while True:
        path = Path(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX, dir=parent)))
        owner = path / OWNER_NAME
        descriptor = os.open(owner, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if _locked(descriptor) and owner.exists():
            return path, descriptor
        os.close(descriptor)  # somebody was just looking at it, and takes it for abandoned


def _own_folders(parent: Path) -> Iterator[Path]:
    try:
        found = list(parent.glob(f"{PREFIX}*"))
    except OSError:
        return
    for folder in found:
        with suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                yield folder


def _taken_over(folder: Path) -> int | None:
    """The lock of an abandoned folder; None where it is in use, or that cannot be told."""
    try:
        descriptor = os.open(folder / OWNER_NAME, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return _opened_if_old(folder)
    except OSError:
        return None
    if _locked(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _opened_if_old(folder: Path) -> int | None:
    """One without an owner's file was just begun, or is from a version that made none."""
    try:
        if time.time() - folder.stat().st_mtime < _UNOWNED_SECONDS:
            return None
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _let_go(folder: Path, descriptor: int) -> None:
    _open_all(folder)
    shutil.rmtree(folder, ignore_errors=True)
    os.close(descriptor)


def _open_all(folder: Path) -> None:
    """Programs leave folders that nobody may write to, and which could not be emptied."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            inner = Path(place, name)
            with suppress(OSError):
                if not inner.is_symlink():
                    inner.chmod(0o700)
