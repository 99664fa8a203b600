"""Has a running server read what the next prompt begins with, while this program is still being loaded.

What that is was noted by the last run in the same folder. Everything happens in a thread beside the imports,
so this module loads next to nothing. Only servers that were started here are asked, and only idle ones.
"""

import hashlib
import json
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from agent.core.errors import AgentError
from agent.core.file_times import last_change
from agent.core.whole_file import write_whole
from agent.resources import runtime_folder, state_folder
from agent.server.record import Record, read_record, record_file
from agent.server.slot_reading import Progress, Read, Reading, last_task, look_at_slots
from agent.server.slot_states import find_state, folder_of, life_of, restore

_WORTHLESS_TOKENS = 64
_MOST_NOTES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadNote:
    """What a run leaves for the next one in the same folder.

    `prompt` is the beginning that their first requests share, as the server's template renders it; `digest`
    identifies it. `life` is the server process that has read it, and `task` the number of the last task of
    that server when the run ended.
    """

    fingerprint: str
    life: str
    prompt: str
    digest: str
    task: int = -1


@dataclass(frozen=True, slots=True)
class EarlyOutcome:
    """What came of it. `is_there`: the server has the head of `digest`. `read`: what reading it cost now."""

    digest: str = ""
    life: str = ""
    is_there: bool = False
    read: Read | None = None


def states_folder() -> Path:
    """Where the states of slots are kept."""
    return state_folder() / "slots"


def notes_folder() -> Path:
    """Where the notes of runs are."""
    return state_folder() / "heads"


def note_file(workspace: Path, profile: str | None, environment: Mapping[str, str]) -> Path:
    """The note for runs in `workspace` that are asked for in the same way. Costs no settings to be read."""
    settings = sorted(f"{name}={value}" for name, value in environment.items() if name.startswith("AGENT_"))
    facts = json.dumps([str(workspace), profile or "", settings])
    name = hashlib.sha256(facts.encode("utf-8", "replace")).hexdigest()[:24]
    return notes_folder() / f"{name}.json"


def read_note(path: Path) -> HeadNote | None:
    """None where there is none, or what is there is no note."""
    try:
        raw: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(raw, dict) or raw.keys() != {field.name for field in fields(HeadNote)}:
        return None
    texts = all(isinstance(raw[name], str) for name in ("fingerprint", "life", "prompt", "digest"))
    return HeadNote(**raw) if texts and isinstance(raw["task"], int) else None


def write_note(path: Path, note: HeadNote) -> None:
    """A note that cannot be written only costs the next run its head start."""
    with suppress(OSError):
        write_whole(path, json.dumps(asdict(note)))
        now = time.time()
        old = sorted(path.parent.glob("*.json"), key=lambda one: last_change(one, now))[:-_MOST_NOTES]
        for one in old:
            one.unlink(missing_ok=True)


class EarlyReading:
    """The thread that does it. `wait` for what comes of it, or `cancel`; `progress` may be set on the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.progress: Progress | None = None
        self._known = threading.Event()
        self._done = threading.Event()
        self._outcome = EarlyOutcome()
        self._reading: Reading | None = None
        self._cancelled = False

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self, digest: str, life: str) -> EarlyOutcome:
        """Blocks until the server of `life` has read the head `digest`, or it is clear that it does not.

        If it is another head that is being read, or another server, it is cancelled.
        """
        self._known.wait()
        if (self._outcome.digest, self._outcome.life) != (digest, life):
            self.cancel()
        self._done.wait()
        return self._outcome

    def cancel(self) -> None:
        """For a run that needs another head, or none."""
        self._cancelled = True
        if self._reading is not None:
            self._reading.cancel()

    def _run(self) -> None:
        try:
            # Whatever goes wrong here, the run itself meets it again and says so.
            with suppress(Exception):
                self._read()
        finally:
            self._known.set()
            self._done.set()

    def _tell(self, total: int, cached: int, processed: int) -> None:
        if self.progress is not None:
            self.progress(total, cached, processed)

    def _read(self) -> None:
        note = read_note(self.path)
        record = read_record(record_file(runtime_folder(), note.fingerprint)) if note else None
        if note is None or record is None or record.state != "ready" or not record.is_running:
            return
        life = life_of(record)
        self._outcome = EarlyOutcome(note.digest, life)
        self._known.set()
        slots = look_at_slots(record)
        if slots is None or any(slot.is_busy for slot in slots) or self._cancelled:
            return
        is_there = note.task == last_task(slots) if note.life == life else self._restored(record, note)
        if is_there:
            self._outcome = EarlyOutcome(note.digest, life, is_there=True)
        elif note.prompt:
            self._reading = Reading(record)
            if not self._cancelled and self._reading.begin(note.prompt):
                read = self._reading.finish(self._tell)
                self._outcome = EarlyOutcome(note.digest, life, is_there=read is not None, read=read)

    def _restored(self, record: Record, note: HeadNote) -> bool:
        folder = folder_of(states_folder(), note.fingerprint)
        state = find_state(folder, note.digest)
        if state is None:
            return False
        slot = slot_to_fill(record)
        return slot is not None and restore(record, folder, state, slot)


def slot_to_fill(record: Record) -> int | None:
    """An idle slot that a state can be read into without a loss; None where there is none.

    What a slot holds is gone when a state is read into it. So where all of them hold something, a tiny prompt
    goes before: the server itself then keeps what it pushes out, as far as its `--cache-ram` allows.
    """
    slots = look_at_slots(record)
    if slots is None or any(slot.is_busy for slot in slots):
        return None
    least = min(slots, key=lambda slot: (slot.tokens, slot.number))
    if least.tokens <= _WORTHLESS_TOKENS:
        return least.number
    reading = Reading(record)
    read = reading.finish() if reading.begin("\n") else None
    return read.slot if read is not None else None


def begin_early(directory: Path | None, profile: str | None) -> EarlyReading | None:
    """Starts for a run that is about to be loaded; None where nothing is known of its folder."""
    try:
        path = note_file((directory or Path.cwd()).resolve(), profile, os.environ)
        if not path.is_file():
            return None
    except (AgentError, OSError, RuntimeError, ValueError):
        return None  # whatever is wrong with a folder, the run finds it too and says so
    early = EarlyReading(path)
    early.start()
    return early
