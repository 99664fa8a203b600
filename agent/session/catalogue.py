"""Finding, describing and removing recorded sessions."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from agent.core.errors import UsageError
from agent.core.likeness import most_alike
from agent.session.kept import load_kept
from agent.session.lines import parse_line
from agent.session.store import EVENTS_NAME, is_active, is_session_id, session_names, sessions_folder

MOST_SESSIONS = 200
MOST_BYTES = 500 * 1000 * 1000
ALWAYS_KEPT = 20

# Any of these says how a session ended; the last one counts.
_LAST_RECORDS = frozenset({"result", "turn_finished", "undo"})
_TAIL_BYTES = 256 * 1024
_FIRST_LINES = 50
_LEAST_LIKENESS = 0.6
_HEADER_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """One line of a list. `result` is why the last turn ended, `files` what the session changed.

    `task` is what a person asked for first, `title` the name that a person gave to the session, if any.
    """

    id: str
    folder: Path
    kind: str
    started: str
    task: str
    profile: str
    result: str
    files: tuple[str, ...]
    title: str = ""


def session_folders(state_folder: Path, workspace: Path) -> list[Path]:
    """The folders of all sessions of a workspace, newest first."""
    parent = sessions_folder(state_folder, workspace)
    return [parent / name for name in sorted(session_names(parent), reverse=True)]


def find_workspace(state_folder: Path, start: Path) -> Path:
    """The nearest folder from `start` upwards that has sessions, else `start`: undo works in a subfolder."""
    start = start.resolve()
    return next(
        (folder for folder in (start, *start.parents) if session_folders(state_folder, folder)), start
    )


def find_session(state_folder: Path, workspace: Path, name: str) -> Path:
    """The session whose id is `name`, or the only one that begins or ends with it.

    Raises:
        UsageError: there is none, or several.
    """
    folders = session_folders(state_folder, workspace)
    exact = [folder for folder in folders if folder.name == name]
    found = exact or [
        folder for folder in folders if name and (folder.name.startswith(name) or folder.name.endswith(name))
    ]
    if not found:
        raise UsageError(f"no session {name!r} for {workspace}", _instead_of(name, folders))
    if len(found) > 1:
        raise UsageError(f"{len(found)} sessions match {name!r}", "give more of the id")
    return found[0]


def _instead_of(name: str, folders: Iterable[Path]) -> str:
    """What may have been meant: a whole id, or the few letters at its end that tell it from others."""
    shown = "agent session list shows the sessions"
    ids = [folder.name for folder in folders]
    by_end = {one.rpartition("-")[2]: one for one in reversed(ids)}
    close = most_alike(name, [*by_end, *ids], cutoff=_LEAST_LIKENESS) if name else ""
    return f"did you mean {by_end.get(close, close)}? {shown}" if close else shown


def summarise(folder: Path) -> SessionSummary:
    """Reads the beginning and the end of a session; unreadable parts are empty."""
    header, last, title = _first_and_last(folder / EVENTS_NAME)
    return SessionSummary(
        id=folder.name,
        folder=folder,
        kind=str(header.get("kind", "run")),
        started=str(header.get("started", "")),
        task=str(header.get("task", "")),
        profile=str(header.get("profile", "")),
        result="running" if is_active(folder) else str(last.get("reason", "")) or "not finished",
        files=tuple(load_kept(folder)),
        title=title,
    )


def remove_session(folder: Path) -> None:
    """Deletes one session with its record and originals.

    Raises:
        UsageError: it is still running, is not a session, or cannot be deleted.
    """
    if not is_session_id(folder.name) or folder.is_symlink():
        raise UsageError(f"{folder} is not a session")
    if is_active(folder):
        raise UsageError(f"session {folder.name} is still running", "stop it first")
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"cannot delete session {folder.name}: {error.strerror or error}") from error


def prune(
    state_folder: Path,
    workspace: Path,
    *,
    most_sessions: int = MOST_SESSIONS,
    most_bytes: int = MOST_BYTES,
    always_kept: int = ALWAYS_KEPT,
) -> list[str]:
    """Deletes the oldest sessions beyond a number and a total size; returns their ids.

    The newest `always_kept` and running ones stay whatever their size. What cannot be deleted stays.
    """
    removed: list[str] = []
    total = 0
    for position, folder in enumerate(session_folders(state_folder, workspace)):
        total += _size_of(folder)
        if position < always_kept or (position < most_sessions and total <= most_bytes):
            continue
        try:
            remove_session(folder)
        except UsageError:
            continue
        removed.append(folder.name)
    return removed


def _size_of(folder: Path) -> int:
    """Bytes, without those of a file that another process removes meanwhile."""
    size = 0
    for entry in _entries(folder):
        with suppress(FileNotFoundError):
            size += 0 if entry.is_dir() else entry.stat(follow_symlinks=False).st_size
    return size


def _entries(folder: Path) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    yield from _entries(Path(entry.path))
    except FileNotFoundError:
        return


def _first_and_last(path: Path) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The header, the last record that tells a result and a title, without reading a long middle."""
    try:
        with path.open("rb") as file:
            header = parse_line(file.readline(_HEADER_BYTES)) or {}
            if header.get("kind") == "chat" and not header.get("task"):
                header["task"] = _first_prompt(file)
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            tail = file.read().split(b"\n")
    except OSError:
        return {}, {}, ""
    title, last = "", {}
    for line in reversed(tail):
        record = parse_line(line)
        kind = record.get("type") if record is not None else None
        if kind == "title" and record is not None:
            title = title or str(record.get("title", ""))
        elif kind in _LAST_RECORDS and record is not None:
            last = last or record
    return header, last, title


def _first_prompt(file: BinaryIO) -> str:
    """What a person said first in a conversation, whose header was written before that."""
    for line in islice(file, _FIRST_LINES):
        record = parse_line(line)
        if record is None or record.get("is_note"):
            continue
        if record.get("type") in ("user_message", "asked"):  # the second from before the model was told
            return str(record.get("text", ""))
    return ""
