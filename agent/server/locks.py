"""A lock between processes that the system releases when its owner dies, however it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class FileLock:
    """An exclusive lock on a file that may stay there; only the lock on it counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def try_acquire(self) -> bool:
        """Takes the lock if it is free.

        Raises:
            OSError: the file cannot be opened.
        """
        if self._file is not None:
            return True
        # Descriptors are not inherited by child programs, so a server never keeps its starter's lock.
        file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        except BaseException:
            file.close()
            raise
        self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@contextmanager
def released_at_end(lock: FileLock) -> Iterator[None]:
    try:
        yield
    finally:
        lock.release()
