"""Reading files of a folder that somebody else may have filled: a link can lead to a device that never ends,
or to a pipe that nobody writes to."""

import errno
import os
import stat
from pathlib import Path

MOST_BYTES = 50_000_000


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most `most` bytes. Links are followed.

    Raises:
        OSError: it cannot be read, is something else, or is larger.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
        # What is larger than it says (in /proc, or while it grows) is read to the limit and not beyond.
        content = file.read(most + 1) if status.st_size <= most else b""
        if status.st_size > most or len(content) > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fspath(path))
        return content
