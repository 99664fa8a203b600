"""Reading and replacing whole files."""

import os
import stat
from pathlib import Path

from tools._text.encodings import DecodedText, TextFormat, decode
from tools._text.kinds import describe, is_known_binary
from tools._text.paths import RefusalError, missing, reason, shown

EDITABLE_BYTES = 32 * 1024 * 1024


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
    return status


def is_folder(path: Path) -> bool:
    """Like `Path.is_dir`, and false for what cannot be looked at."""
    try:
        return path.is_dir()
    except OSError:
        return False


def load_text(workspace: Path, path: Path) -> tuple[bytes, DecodedText]:
    """Content of a text file that is about to be changed.

    Raises:
        RefusalError: the file is missing, too long, unreadable or binary.
    """
    status = require_file(workspace, path)
    name = shown(workspace, path)
    if status.st_size > EDITABLE_BYTES:
        raise RefusalError(f"{name} is too long to be edited here. Change it with a shell command.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RefusalError(f"{name} cannot be read: {reason(error)}.") from None
    decoded = None if is_known_binary(data) else decode(data)
    if decoded is None:
        raise RefusalError(f"{name} is no text file ({describe(data)}). Change it with a shell command.")
    return data, decoded


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


def replace_file(workspace: Path, path: Path, data: bytes) -> None:
    """Writes a file in one step: readers see the old or the new content, never a part of it.

    Creates the folders above it. An existing file keeps its mode and, as far as possible, its owner.

    Raises:
        RefusalError: the place cannot be written.
    """
    name = shown(workspace, path)
    try:
        # Renaming over a write-protected file would work, but the protection was meant.
        if path.exists() and not os.access(path, os.W_OK):
            raise RefusalError(f"{name} is write-protected. Leave it as it is.")
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_and_rename(path, data)
    except (FileExistsError, NotADirectoryError):
        raise RefusalError(f"{name} cannot be created: a part of its path is a file, not a folder.") from None
    except OSError as error:
        raise RefusalError(f"{name} cannot be written: {reason(error)}.") from None


def _write_and_rename(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".agent-{os.urandom(6).hex()}.tmp")
    # 0o666 leaves the mode of a new file to the umask, which tempfile would not.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            _copy_mode(path, stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _copy_mode(path: Path, descriptor: int) -> None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    mode = stat.S_IMODE(status.st_mode)
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError:
            mode &= 0o777  # set-user and set-group bits must not pass to another owner
    os.fchmod(descriptor, mode)
