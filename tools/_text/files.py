"""Reading and replacing whole files."""

import contextlib
import errno
import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tools._text.encodings import DecodedText, TextFormat, decode
from tools._text.kinds import describe, is_known_binary
from tools._text.paths import RefusalError, missing, reason, shown

EDITABLE_BYTES = 64 * 1024 * 1024
LARGE_BYTES = 1024 * 1024
"""Beyond this size work on a file is done in a thread, see `is_large`."""

_NOT_ON_DISK = (Path("/proc"), Path("/sys"), Path("/dev"))


def require_file(workspace: Path, path: Path) -> os.stat_result:
    """The status of an existing regular file.

    Raises:
        RefusalError: there is no such file, or it is a folder, a pipe or a device.
    """
    name = shown(workspace, path)
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise missing(workspace, path) from None
    except OSError as error:
        raise RefusalError(f"{name} cannot be opened: {reason(error)}.") from None
    if stat.S_ISDIR(status.st_mode):
        raise RefusalError(f"{name} is a folder. Give the path of a file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise RefusalError(f"{name} is a pipe, socket or device, not a file.")
    if any(path.is_relative_to(folder) for folder in _NOT_ON_DISK):
        raise RefusalError(f"{name} belongs to the system and is no real file. Use a shell command.")
    return status


def is_folder(path: Path) -> bool:
    """Like `Path.is_dir`, and false for what cannot be looked at."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_large(path: Path) -> bool:
    """Whether work on a file is for a thread; false for what cannot be looked at."""
    try:
        return path.stat().st_size > LARGE_BYTES
    except (OSError, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class LoadedText:
    """A text file as it was when `status` was taken."""

    data: bytes
    decoded: DecodedText
    status: os.stat_result


def load_text(workspace: Path, path: Path) -> LoadedText:
    """Content of a text file that is about to be changed.

    Raises:
        RefusalError: the file is missing, too long, unreadable or binary.
    """
    status = require_file(workspace, path)
    name = shown(workspace, path)
    if status.st_size > EDITABLE_BYTES:
        raise RefusalError(f"{name} is too long to be edited here. Change it with a shell command.")
    try:
        data = read_regular(path)
    except OSError as error:
        raise RefusalError(f"{name} cannot be read: {reason(error)}.") from None
    decoded = None if is_known_binary(data) else decode(data)
    if decoded is None:
        raise RefusalError(f"{name} is no text file ({describe(data)}). Change it with a shell command.")
    return LoadedText(data, decoded, status)


def read_regular(path: Path) -> bytes:
    """Content of a file, without waiting for one that has become a pipe since it was looked at."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def encoded(name: str, text: str, format_: TextFormat) -> bytes:
    """The bytes of a file with this text.

    Raises:
        RefusalError: the file's encoding lacks a character.
    """
    try:
        return format_.encode(text)
    except UnicodeEncodeError as error:
        character = text[error.start : error.start + 1]
        raise RefusalError(
            f"{name} is stored as {format_.encoding}, which has no {character!a}. Leave it out."
        ) from None


def replace_file(workspace: Path, path: Path, data: bytes, seen: os.stat_result | None = None) -> None:
    """Writes a file in one step: readers see the old or the new content, never a part of it.

    Creates the folders above it. An existing file keeps its mode, its extended attributes and, as far as
    possible, its owner. Where one step would cost the file something that it has (other hard links, the
    owner, a mount of its own), the content is written into the file itself, see `_overwrite`.

    Args:
        seen: status of the file when its content was loaded; None if it did not exist.

    Raises:
        RefusalError: the place cannot be written, or the file is not the one that was loaded.
    """
    name = shown(workspace, path)
    try:
        status = path.stat() if path.exists() else None
        if status is not None and not _may_be_written(path, status):
            # Renaming over a write-protected file would work, but the protection was meant.
            raise RefusalError(f"{name} is write-protected. Leave it as it is.")
        if seen is not None and (status is None or _identity(status) != _identity(seen)):
            raise RefusalError(f"{name} changed on disk just now. Read it again first.")
        path.parent.mkdir(parents=True, exist_ok=True)
        _put(path, data, status)
    except (FileExistsError, NotADirectoryError):
        raise RefusalError(f"{name} cannot be created: a part of its path is a file, not a folder.") from None
    except OSError as error:
        raise RefusalError(f"{name} cannot be written: {reason(error)}.") from None


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _may_be_written(path: Path, status: os.stat_result) -> bool:
    # Root may write everything, which is no reason to.
    return bool(status.st_mode & 0o222) and os.access(path, os.W_OK)


def _put(path: Path, data: bytes, status: os.stat_result | None) -> None:
    """`status` is that of the file which is replaced, None for a new one."""
    temporary = path.with_name(f".agent-{os.urandom(6).hex()}.tmp")
    try:
        # 0o666 leaves the mode of a new file to the umask, which tempfile would not.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except PermissionError:
        if status is None:
            raise
        _overwrite(path, data)  # the file may be written, its folder not
        return
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            keeps_all = status is None or (status.st_nlink == 1 and _resemble(path, status, descriptor))
        if keeps_all and _moved(temporary, path):
            return
        _overwrite(path, data)
    finally:
        temporary.unlink(missing_ok=True)


def _moved(temporary: Path, path: Path) -> bool:
    """Whether the new file could take the place of the old one; not so where that is a mount of its own."""
    try:
        temporary.replace(path)
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.EXDEV, errno.EPERM) and path.exists():
            return False
        raise
    return True


def _overwrite(path: Path, data: bytes) -> None:
    """Writes into the file itself, which stays the same file. Puts its content back if that fails."""
    before = path.read_bytes()
    with path.open("r+b", buffering=0) as stream:
        try:
            _write_all(stream, data)
        except OSError:
            stream.seek(0)
            _write_all(stream, before)
            raise


def _write_all(stream: io.FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[stream.write(left) or 0 :]
    stream.truncate(len(data))


def _resemble(path: Path, status: os.stat_result, descriptor: int) -> bool:
    """Gives the new file owner, mode and attributes of the old one; False if the owner cannot be kept."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError:
            return False
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        _copy_attributes(path, descriptor)
    return True


def _copy_attributes(path: Path, descriptor: int) -> None:
    """Access lists among them. What the file system or the system forbids is left out."""
    try:
        names = os.listxattr(path)
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            os.setxattr(descriptor, name, os.getxattr(path, name))
