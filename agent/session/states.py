"""What a path is at one moment, and keeping the bytes of it."""

import hashlib
import os
import secrets as random_source
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, Literal

from agent.core.errors import AgentError, UsageError
from agent.core.private_folder import make_private_folder

Kind = Literal["absent", "file", "link", "other"]

_CHUNK_BYTES = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileState:
    """A path as found: `content` is a file's sha256 or a link's target, `mode` a file's permission bits."""

    kind: Kind
    content: str = ""
    mode: int = 0


ABSENT = FileState("absent")


def state_of(path: Path) -> FileState:
    """What `path` itself is; a link is not followed. Where a folder is, there is no file.

    Raises:
        OSError: the file is there but cannot be read.
    """
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return FileState("link", os.readlink(path))
        if stat.S_ISDIR(status.st_mode):
            return ABSENT
        if not stat.S_ISREG(status.st_mode):
            return FileState("other")
        return FileState("file", digest_of(path), stat.S_IMODE(status.st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT


def state_below(workspace: Path, key: str) -> FileState:
    """What the file `key` of the workspace is. One that is only there by way of a linked folder is absent.

    Raises:
        OSError: the file is there but cannot be read.
    """
    return ABSENT if linked_parent(workspace, key) else state_of(workspace / key)


def linked_parent(workspace: Path, key: str) -> str:
    """The name of the outermost folder on the way to `key` that is a link; empty where none is."""
    parents = [parent.as_posix() for parent in reversed(Path(key).parents) if parent != Path()]
    return next((parent for parent in parents if (workspace / parent).is_symlink()), "")


def digest_of(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def relative_key(workspace: Path, path: Path) -> str:
    """The name of `path` inside the resolved `workspace`, with `/` between folders.

    Folders on the way are resolved, so that one file has one name; a link at the end is not.

    Raises:
        UsageError: the path is outside of the workspace, or is the workspace.
    """
    # Plain strings: this is on the way of each file of a turn, and `Path` would take most of the time.
    root, name = os.fspath(workspace), os.fspath(path)
    absolute = name if name.startswith("/") else f"{root}/{name}"
    inside = f"{root}/".replace("//", "/")
    if absolute.startswith(inside) and _leads_straight(inside, key := absolute[len(inside) :]):
        return key
    folder, _, name = absolute.rpartition("/")
    if name in ("", "..", "."):
        entry = os.path.realpath(f"{folder}/{name}")
    else:
        entry = f"{os.path.realpath(folder or '/')}/{name}".replace("//", "/")
    if not entry.startswith(inside) or entry == inside:
        raise UsageError(f"{path} is outside of the workspace {workspace}")
    return entry[len(inside) :]


def _leads_straight(inside: str, key: str) -> bool:
    """Whether all on the way to a file, which has no `..` in its name, are folders and no links to some."""
    parts = key.split("/")
    if not {"", ".", ".."}.isdisjoint(parts):
        return False
    folder = inside
    try:
        for part in parts[:-1]:
            folder += part
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                return False
            folder += "/"
    except OSError:
        return False
    return True


@dataclass(slots=True)
class KeptFile:
    """A file that the session changes.

    `original` is what it was before the first change and `result` what it was after the last one, None
    while that is not known. `foreign` says that somebody else changed it between two changes of ours.
    `made_folders` had to be created for it, outermost first.
    """

    original: FileState
    made_folders: tuple[str, ...] = ()
    result: FileState | None = None
    foreign: bool = False

    @property
    def last_known(self) -> FileState:
        return self.result or self.original


class ContentStore:
    """File contents by their sha256, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._folder = os.fspath(folder)

    def path_of(self, content: str) -> Path:
        return self.folder / content

    def keep(self, path: Path | str) -> FileState:
        """Notes what `path` is, and keeps a file's bytes.

        Raises:
            AgentError: the bytes could not be kept; nothing may be changed then.
            UsageError: the path is a folder or a device.
        """
        name = os.fspath(path)
        try:
            mode = os.lstat(name).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        if stat.S_ISLNK(mode):
            return FileState("link", os.readlink(name))
        if not stat.S_ISREG(mode):
            raise UsageError(f"{path} is not a regular file")
        try:
            return FileState("file", self._copy_in(name), stat.S_IMODE(mode))
        except OSError as error:
            raise AgentError(
                f"cannot keep the original of {path} in {self.folder}: {error.strerror or error}",
                "nothing was changed; free some disk space or choose another folder with AGENT_STATE_HOME",
            ) from error

    def take_over(self, content: str, other: "ContentStore") -> None:
        """Has what another store of the same session has. Raises OSError."""
        if self.path_of(content).exists():
            return
        make_private_folder(self.folder)
        try:
            os.link(other.path_of(content), self.path_of(content))
        except FileExistsError:
            return
        except OSError:  # a file system without hard links
            self._copy_in(other.path_of(content))

    def add(self, data: bytes) -> str:
        """Keeps bytes, and gives their name. Raises OSError."""
        return self._write_in(data)

    def _copy_in(self, path: Path | str) -> str:
        # A link or a pipe that has taken its place since is neither followed nor waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            # No larger buffer than needed: the memory for it takes longer than reading.
            size = os.fstat(descriptor).st_size
            beginning = os.read(descriptor, min(size + 1, _CHUNK_BYTES))
            if len(beginning) == size:
                return self._write_in(beginning)
            os.lseek(descriptor, 0, os.SEEK_SET)
            with FileIO(descriptor, closefd=False) as source:
                return self._stream_in(source)
        finally:
            os.close(descriptor)

    def _write_in(self, data: bytes) -> str:
        content = hashlib.sha256(data).hexdigest()
        final = f"{self._folder}/{content}"
        # Nobody trusts a file here before the index names it, or its size is right: a kill leaves no trap.
        # So it gets its own name at once, which is half the time of a rename.
        try:
            _write_new(final, data)
        except FileNotFoundError:
            make_private_folder(self.folder)
            _write_new(final, data)
        except FileExistsError:
            if not self._is_complete(final, len(data)):
                part = f"{self._folder}/part-{random_source.token_hex(8)}"
                _write_new(part, data)
                Path(part).replace(final)
        return content

    def _stream_in(self, source: FileIO) -> str:
        make_private_folder(self.folder)
        part = self.folder / f"part-{random_source.token_hex(8)}"
        try:
            with part.open("xb") as file:
                os.fchmod(file.fileno(), 0o600)
                content = copy_and_digest(source, file.write)
                size = file.tell()
            if self._is_complete(str(self.path_of(content)), size):
                part.unlink()
            else:
                part.replace(self.path_of(content))
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return content

    @staticmethod
    def _is_complete(final: str, size: int) -> bool:
        """Whether it is there already. After a power loss a file may have its name and not its bytes."""
        try:
            return Path(final).stat().st_size == size
        except OSError:
            return False


def _write_new(path: str, data: bytes) -> None:
    """A new file with these bytes, for its owner only; none where they could not all be written."""
    descriptor = os.open(path, _NEW, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except BaseException:
        Path(path).unlink()
        raise
    finally:
        os.close(descriptor)


def copy_and_digest(source: BinaryIO | FileIO, write: Callable[[bytes], Any]) -> str:
    """Passes everything from `source` to `write` and returns its sha256."""
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK_BYTES):
        digest.update(chunk)
        write(chunk)
    return digest.hexdigest()


def state_record(state: FileState) -> dict[str, Any]:
    return {"kind": state.kind, "content": state.content, "mode": state.mode}


def state_from(record: Mapping[str, Any]) -> FileState:
    """The inverse of `state_record`.

    Raises:
        KeyError, TypeError, ValueError: the record is not one of ours.
    """
    if record["kind"] not in ("absent", "file", "link", "other"):
        raise ValueError(f"unknown kind of file: {record['kind']}")
    return FileState(record["kind"], str(record["content"]), int(record["mode"]))
