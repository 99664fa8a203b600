"""Copies of files that a command may overwrite, made before it runs: `<session folder>/held/`.

Which files a command will change is not known beforehand, so all that nobody else keeps (files with changes
that are not committed, untracked files) are held, within bounds. A file that has not changed since the last
command is not copied again. After the command those that it changed become originals of the session (see
`kept`); the rest stays for the next command, and goes when the session ends.

`note.json` is there while a command runs: what was, for a session that was killed meanwhile.
"""

import json
import os
import shutil
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.core.errors import AgentError, UsageError
from agent.core.private_folder import make_private_folder
from agent.core.whole_file import write_whole
from agent.session.states import ABSENT, ContentStore, FileState, state_from, state_record

FOLDER_NAME = "held"
NOTE_NAME = "note.json"
INDEX_NAME = "index"
LARGEST_FILE_BYTES = 100 * 1000 * 1000
MOST_BYTES = 200 * 1000 * 1000
MOST_FILES = 20_000
MOST_INNER = 30  # each takes three processes of git around a command

# File systems take their times from a clock that lags a few milliseconds behind.
_CLOCK_LAG_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class Signature:
    """What tells, without reading a file, that it is as it was. Times in nanoseconds."""

    mode: int
    size: int
    inode: int
    mtime_ns: int
    ctime_ns: int


def signature_of(path: Path) -> Signature | None:
    """None where there is no file or link, or where it cannot be looked at. A folder is no file."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return None
    return Signature(status.st_mode, status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(slots=True)
class Holding:
    """What was held before one command: for each name how it looked, and what it was.

    `left` are files that are not held, with the reason.
    """

    signatures: dict[str, Signature] = field(default_factory=dict)
    states: dict[str, FileState] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Copy:
    signature: Signature
    state: FileState
    taken_ns: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is held at most, at once, and in how many inner repositories one looks for it."""

    file_bytes: int = LARGEST_FILE_BYTES
    bytes: int = MOST_BYTES
    files: int = MOST_FILES
    inner: int = MOST_INNER


USUAL_BOUNDS = Bounds()


class HeldFiles:
    """The held copies of one session. Not for two threads at once."""

    def __init__(self, session_folder: Path, workspace: Path, bounds: Bounds = USUAL_BOUNDS) -> None:
        self.folder = session_folder / FOLDER_NAME
        self.contents = ContentStore(self.folder)
        self.index = self.folder / INDEX_NAME
        self._workspace = workspace
        self._bounds = bounds
        self._copies: dict[str, _Copy] = {}

    def prepare(self) -> None:
        """Makes the folder. Raises OSError."""
        make_private_folder(self.folder)

    def hold(self, keys: Iterable[str], after: Iterable[str] = ()) -> Holding:
        """Keeps what these files are now, small ones first where not all have room; then those of `after`."""
        holding = Holding()
        later = frozenset(after)
        for key in (*keys, *later):
            found = signature_of(self._workspace / key)
            if found is not None:
                holding.signatures[key] = found
        self._forget_all_but(holding.signatures)
        room = self._bounds.bytes
        for key in sorted(holding.signatures, key=lambda one: (one in later, holding.signatures[one].size)):
            signature = holding.signatures[key]
            reason = self._no_room(signature, len(holding.states), room)
            if not reason:
                reason = self._take(key, signature, holding)
                room -= signature.size
            if reason:
                holding.left[key] = reason
        return holding

    def write_note(
        self,
        states: Mapping[str, FileState],
        modes: Mapping[str, int],
        *,
        has_index: bool,
        inner: Sequence[str] = (),
    ) -> None:
        """Notes what was, in one step; `inner` are the inner repositories whose indexes are there too.

        Raises OSError.
        """
        note = {
            "files": {key: state_record(state) for key, state in states.items()},
            "modes": dict(modes),
            "has_index": has_index,
            "inner": list(inner),
        }
        write_whole(self.folder / NOTE_NAME, json.dumps(note))

    def remove_note(self) -> None:
        (self.folder / NOTE_NAME).unlink(missing_ok=True)

    def _take(self, key: str, signature: Signature, holding: Holding) -> str:
        known = self._copies.get(key)
        if known is not None and known.signature == signature and self._is_proof(known):
            holding.states[key] = known.state
            return ""
        taken = time.time_ns()
        try:
            state = self.contents.keep(self._workspace / key)
        except UsageError:
            return "is no regular file"
        except (AgentError, OSError):
            return "could not be kept"
        if state == ABSENT:
            return ""
        self._copies[key] = _Copy(signature, state, taken)
        holding.states[key] = state
        return ""

    def _is_proof(self, copy: _Copy) -> bool:
        """Whether equal times prove equal content: not for a file that was changed just before the copy."""
        is_old = max(copy.signature.mtime_ns, copy.signature.ctime_ns) < copy.taken_ns - _CLOCK_LAG_NS
        return is_old and (copy.state.kind != "file" or self.contents.path_of(copy.state.content).exists())

    def _no_room(self, signature: Signature, held: int, room: int) -> str:
        if not stat.S_ISREG(signature.mode) and not stat.S_ISLNK(signature.mode):
            return "is no regular file"
        if signature.size > self._bounds.file_bytes:
            return f"is larger than {self._bounds.file_bytes // 1_000_000} MB"
        if held >= self._bounds.files or signature.size > room:
            return "is more than is kept before a command"
        return ""

    def _forget_all_but(self, keys: Mapping[str, object]) -> None:
        """What is not asked for any more makes room."""
        gone = [self._copies.pop(key) for key in list(self._copies) if key not in keys]
        needed = {copy.state.content for copy in self._copies.values()}
        for copy in gone:
            if copy.state.kind == "file" and copy.state.content not in needed:
                self.contents.path_of(copy.state.content).unlink(missing_ok=True)


def drop_held(session_folder: Path) -> None:
    """Deletes the held copies of a session that has ended, unless a command was cut short by a kill."""
    folder = session_folder / FOLDER_NAME
    if not (folder / NOTE_NAME).exists():
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Note:
    """What `HeldFiles.write_note` was given."""

    states: Mapping[str, FileState]
    modes: Mapping[str, int]
    has_index: bool
    inner: tuple[str, ...]


def load_note(session_folder: Path) -> Note | None:
    """What a session noted before a command during which it was killed; None where there was none."""
    try:
        note: Any = json.loads((session_folder / FOLDER_NAME / NOTE_NAME).read_text("ascii"))
        states = {str(key): state_from(state) for key, state in note["files"].items()}
        modes = {str(key): int(mode) for key, mode in note["modes"].items()}
        inner = tuple(map(str, note.get("inner", ())))  # older versions knew of none
        return Note(states, modes, bool(note["has_index"]), inner)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
