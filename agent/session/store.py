"""The record of one session: `<state folder>/sessions/<workspace hash>/<session id>/events.jsonl`.

The first line describes the session, see `Header`; every other line is one event as
`agent.core.events.to_record` gives it. A session's folder also holds `before/` (see `kept`) and
whatever else the run keeps, such as long outputs. Sessions are found again by `catalogue`.
"""

import fcntl
import hashlib
import os
import secrets as random_source
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from agent.core.errors import UsageError
from agent.core.private_folder import make_private_folder
from agent.session.formats import FORMAT_VERSION
from agent.session.lines import LineAppender, Write, plain, read_lines

EVENTS_NAME = "events.jsonl"
REDACTED = "[redacted]"

SessionKind = Literal["run", "chat", "undo"]

_ID_TIME = "%Y%m%d-%H%M%S"
_SHORTEST_SECRET = 6
_LOOKS_IN_THE_WAY = 10
_LOOK_SECONDS = 0.005
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the first line says. `started` is UTC in ISO 8601; `task` is the person's text."""

    type: Literal["session"] = "session"
    format: int = FORMAT_VERSION
    id: str
    workspace: str
    started: str
    profile: str = ""
    task: str = ""
    kind: SessionKind = "run"


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Machine:
    """The clock and the disk that a record is made with."""

    now: Callable[[], datetime] = _utc_now
    write: Write = os.write


class SessionStore:
    """The open record of a running session, held by one process. Use `create` or `reopen`, and close it.

    Attributes:
        id: sorts by start time; a random end keeps two processes apart.
        folder: the session's own folder, mode 0700.
        path: the file with the events.
    """

    def __init__(
        self,
        folder: Path,
        secrets: Iterable[str],
        report: Callable[[str], None] | None,
        write: Write,
        *,
        exclusive: bool = True,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self.folder = folder
        self.id = folder.name
        self.path = folder / EVENTS_NAME
        self._secrets = tuple(secrets)
        self._report = report
        self._failed = False
        self._lines = LineAppender(self.path, exclusive=exclusive, write=write)
        # Tells undo and the pruning of other processes that this session is alive; ends with the process.
        try:
            _take(self._lines.descriptor, pause)
        except OSError:
            self._lines.close()
            raise

    @classmethod
    def create(
        cls,
        state_folder: Path,
        workspace: Path,
        *,
        profile: str = "",
        task: str = "",
        kind: SessionKind = "run",
        secrets: Iterable[str] = (),
        report: Callable[[str], None] | None = None,
        machine: Machine = Machine(),
    ) -> "SessionStore":
        """Starts a session for `workspace` in a new folder of its own.

        `secrets` never reach the file. `report` gets one line when recording fails for the first time;
        the run goes on without a record.

        Raises:
            UsageError: the folder cannot be created.
        """
        parent = sessions_folder(state_folder, workspace)
        try:
            make_private_folder(parent)
            started, folder = _make_folder(parent, machine.now())
            store = cls(folder, secrets, report, machine.write)
        except OSError as error:
            raise UsageError(
                f"cannot start a session in {parent}: {error.strerror or error}",
                "check its permissions and the free space, or name another folder with AGENT_STATE_HOME",
            ) from error
        store.append(
            plain(
                Header(
                    id=store.id,
                    workspace=str(workspace.resolve()),
                    started=started.isoformat(timespec="milliseconds"),
                    profile=profile,
                    task=task,
                    kind=kind,
                ),
                str,
            )
        )
        return store

    @classmethod
    def reopen(
        cls,
        folder: Path,
        *,
        secrets: Iterable[str] = (),
        report: Callable[[str], None] | None = None,
    ) -> "SessionStore":
        """Goes on with a session that has ended, however it ended.

        Raises:
            UsageError: another process is recording it, or it cannot be opened.
        """
        try:
            return cls(folder, secrets, report, os.write, exclusive=False)
        except BlockingIOError as error:
            raise _open_elsewhere(folder) from error
        except OSError as error:
            raise UsageError(f"cannot open session {folder.name}: {error.strerror or error}") from error

    def hide(self, secret: str) -> None:
        """Keeps one more secret out of what is recorded from now on."""
        if secret:
            self._secrets = (*self._secrets, secret)

    def append(self, record: Mapping[str, Any]) -> None:
        """Adds one event. Never raises for a record or disk that cannot be written, see `create`."""
        try:
            self._lines.append(plain(record, self._redacted))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            if self._failed:
                return
            self._failed = True
            if self._report is not None:
                reason = error.strerror if isinstance(error, OSError) and error.strerror else error
                self._report(f"the session is no longer recorded completely in {self.path}: {reason}")

    def close(self) -> None:
        if self._lines.descriptor >= 0:
            # A program that is being started right now may still share the descriptor.
            fcntl.flock(self._lines.descriptor, fcntl.LOCK_UN)
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _redacted(self, text: str) -> str:
        return redact(text, self._secrets)


def load(path: Path) -> list[dict[str, Any]]:
    """The records of a session file, header first.

    Lines that a crash tore, also a tail of NUL bytes, are left out; everything else is returned.

    Raises:
        OSError: the file cannot be read.
    """
    return list(read_lines(path))


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` with every secret replaced. Secrets under 6 characters are words, and are left alone."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, REDACTED)
    return text


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the variables that by their name hold a key, token or password."""
    return tuple(
        value
        for name, value in environment.items()
        if any(word in name.upper() for word in _SECRET_WORDS)
        and len(value) >= _SHORTEST_SECRET
        and not Path(value).exists()  # the place of a key file, whose name is no secret
    )


def sessions_folder(state_folder: Path, workspace: Path) -> Path:
    """The folder that holds the sessions of one workspace, which may not exist yet."""
    digest = hashlib.sha256(os.fsencode(workspace.resolve())).hexdigest()
    return state_folder / "sessions" / digest[:16]


def is_session_id(name: str) -> bool:
    """Whether a folder name is one that `SessionStore.create` gives."""
    parts = name.split("-")
    return [len(part) for part in parts] == [8, 6, 3, 6] and all(
        character in "0123456789abcdef" for character in "".join(parts)
    )


def session_names(folder: Path) -> list[str]:
    """The ids of the sessions in one workspace's folder, in no order; empty where there is no folder."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if is_session_id(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def moment_of(session_folder: Path, now: float) -> dict[str, Any]:
    """When something happens in a session, for the order of all of a workspace's: see `kept.Moment`.

    The newest session decides, as a clock may be set back.
    """
    return {"after": max(session_names(session_folder.parent), default=session_folder.name), "at": now}


def require_closed(session_folder: Path) -> None:
    """Raises UsageError: a living process is recording this session."""
    if is_active(session_folder):
        raise _open_elsewhere(session_folder)


def _open_elsewhere(folder: Path) -> UsageError:
    return UsageError(
        f"session {folder.name} is open in another program",
        "close it there, or go on in a copy: --resume ID --fork",
    )


def is_active(session_folder: Path) -> bool:
    """Whether a living process is still recording this session."""
    try:
        descriptor = os.open(session_folder / EVENTS_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _take(descriptor: int, pause: Callable[[float], object]) -> None:
    """Holds a session. Who only looks whether somebody does, see `is_active`, is in the way for a moment."""
    for _ in range(_LOOKS_IN_THE_WAY):
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pause(_LOOK_SECONDS)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _make_folder(parent: Path, now: datetime) -> tuple[datetime, Path]:
    """A new folder whose name sorts after all others, also when the clock was set back."""
    now = now.astimezone(UTC)
    newest = max(session_names(parent), default="")
    moment = now
    if newest and _id_time(moment) <= newest[:19]:
        moment = _after(_time_of(newest, now))
    while True:
        folder = parent / f"{_id_time(moment)}-{random_source.token_hex(3)}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return now, folder


def _after(moment: datetime) -> datetime:
    """A millisecond later. There is nothing later than the year 9999, which a broken clock may have shown."""
    try:
        return moment + timedelta(milliseconds=1)
    except OverflowError:
        return moment


def _id_time(moment: datetime) -> str:
    return f"{moment.strftime(_ID_TIME)}-{moment.microsecond // 1000:03d}"


def _time_of(session_id: str, otherwise: datetime) -> datetime:
    try:
        seconds = datetime.strptime(session_id[:15], _ID_TIME).replace(tzinfo=UTC)
        return seconds + timedelta(milliseconds=int(session_id[16:19]))
    except ValueError:
        return otherwise
