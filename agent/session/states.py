"""What a path is at one moment, and keeping the bytes of it."""

import hashlib
import os
import secrets as random_source
import stat
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from agent.core.errors import AgentError, UsageError
from agent.core.private_folder import make_private_folder

Kind = Literal["absent", "file", "link", "other"]

_CHUNK_BYTES = 1 << 20


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
            return FileState("link", str(path.readlink()))
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
    entry = workspace / path
    entry = entry.resolve() if entry.name == ".." else entry.parent.resolve() / entry.name
    if entry == workspace or not entry.is_relative_to(workspace):
        raise UsageError(f"{path} is outside of the workspace {workspace}")
    return entry.relative_to(workspace).as_posix()


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

    def path_of(self, content: str) -> Path:
        return self.folder / content

    def keep(self, path: Path) -> FileState:
        """Notes what `path` is, and keeps a file's bytes.

        Raises:
            AgentError: the bytes could not be kept; nothing may be changed then.
            UsageError: the path is a folder or a device.
        """
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        if stat.S_ISLNK(status.st_mode):
            return FileState("link", str(path.readlink()))
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{path} is not a regular file")
        try:
            return FileState("file", self._copy_in(path), stat.S_IMODE(status.st_mode))
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
        make_private_folder(self.folder)
        content = hashlib.sha256(data).hexdigest()
        part = self.folder / f"part-{random_source.token_hex(8)}"
        try:
            part.write_bytes(data)
            part.chmod(0o600)
            part.replace(self.path_of(content))
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return content

    def _copy_in(self, path: Path) -> str:
        make_private_folder(self.folder)
        with (
            path.open("rb") as source,
            tempfile.NamedTemporaryFile(dir=self.folder, prefix="part-", delete=False) as part,
        ):
            try:
                content = copy_and_digest(source, part.file.write)
                part.close()
                Path(part.name).replace(self.path_of(content))
            except BaseException:
                Path(part.name).unlink(missing_ok=True)
                raise
        return content


def copy_and_digest(source: BinaryIO, write: Callable[[bytes], Any]) -> str:
    """Passes everything from `source` to `write` and returns its sha256."""
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK_BYTES):
        digest.update(chunk)
        write(chunk)
    return digest.hexdigest()


def state_record(state: FileState) -> dict[str, Any]:
    return asdict(state)


def state_from(record: Mapping[str, Any]) -> FileState:
    """The inverse of `state_record`.

    Raises:
        KeyError, TypeError, ValueError: the record is not one of ours.
    """
    if record["kind"] not in ("absent", "file", "link", "other"):
        raise ValueError(f"unknown kind of file: {record['kind']}")
    return FileState(record["kind"], str(record["content"]), int(record["mode"]))
