"""What a batch is, and how far it has come: `<state folder>/batches/<id>/batch.json`.

Written anew after each change, so that a batch that was killed goes on from where it was. Copies of the task
files lie beside it: going on does not depend on what became of the originals.
"""

import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from agent.core.errors import UsageError
from agent.core.whole_file import write_whole
from agent.resources import state_folder
from agent.server.locks import FileLock

TaskState = Literal["waiting", "running", "done", "not_done", "interrupted"]
"""`done`: it needs no further run. All others are run when the batch goes on."""

FORMAT = 1
RECORD_NAME = "batch.json"
LAST = "last"
_ID_TIME = "%Y%m%d-%H%M%S"


@dataclass(slots=True, kw_only=True)
class TaskEntry:
    """One task. `name` is unique in the batch, `file` is the copy and `source` what the person named.

    `kept` says whether the work tree is there. A branch that nothing was committed on is gone after the task.
    `result` is the object that `agent run --output json` would have printed, None before the first end.
    """

    name: str
    source: str
    file: str
    branch: str
    worktree: str
    state: TaskState = "waiting"
    kept: bool = False
    branch_gone: bool = False
    result: dict[str, Any] | None = None


@dataclass(slots=True, kw_only=True)
class BatchRecord:
    """`root` is the top of the person's checkout, `subfolder` where in it the tasks work ("" = at the top).

    `flags` are those of the command line that hold for each task, `commit` is what all of them start from.
    """

    id: str
    root: str
    subfolder: str
    commit: str
    flags: dict[str, Any]
    jobs: int
    tasks: list[TaskEntry] = field(default_factory=list)
    format: int = FORMAT

    @property
    def folder(self) -> Path:
        return batches_folder() / self.id

    def save(self) -> None:
        """Raises UsageError when it cannot be written."""
        try:
            write_whole(self.folder / RECORD_NAME, json.dumps(asdict(self), indent=1))
        except OSError as error:
            raise UsageError(
                f"cannot write down the batch in {self.folder}: {error.strerror or error}",
                "check its permissions and the free space, or name another folder with AGENT_STATE_HOME",
            ) from error

    def lock(self) -> FileLock:
        """Holds the batch for this process. Raises UsageError when another one has it."""
        lock = FileLock(self.folder / "lock")
        if not lock.try_acquire():
            raise UsageError(
                f"the batch {self.id} is at work in another process", "wait for its end, or end it there"
            )
        return lock


def batches_folder() -> Path:
    return state_folder() / "batches"


def new_id(now: datetime, known: Iterable[str]) -> str:
    """Sorts by time, and after all that are known, also when the clock was set back.

    The random end keeps two apart that begin in the same second.
    """
    stamp = f"{now.astimezone(UTC):{_ID_TIME}}"
    newest = max(known, default="").rpartition("-")[0]
    if stamp <= newest:
        stamp = _second_after(newest) or stamp
    return f"{stamp}-{secrets.token_hex(2)}"


def known_ids() -> list[str]:
    """Those of all batches, oldest first."""
    return sorted(path.parent.name for path in batches_folder().glob(f"*/{RECORD_NAME}"))


def _second_after(stamp: str) -> str:
    """Empty where that is no time, or there is none after it."""
    try:
        return f"{datetime.strptime(stamp, _ID_TIME) + timedelta(seconds=1):{_ID_TIME}}"
    except (ValueError, OverflowError):
        return ""


def load_batch(asked: str) -> BatchRecord:
    """The batch with an id, or the newest one for `last`.

    Raises:
        UsageError: there is none, or its record is damaged.
    """
    folder = batches_folder()
    known = known_ids()
    found = known[-1:] if asked == LAST else [name for name in known if name == asked]
    if not found:
        newest = f"the newest is {known[-1]}" if known else "none was begun yet"
        raise UsageError(f"there is no batch {asked}", f"{newest}; they are in {folder}")
    path = folder / found[0] / RECORD_NAME
    try:
        return _read(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"the record of the batch is damaged: {path}", f"begin it anew ({error})") from error


def _read(raw: dict[str, Any]) -> BatchRecord:
    if raw["format"] != FORMAT:
        raise ValueError(f"unknown format {raw['format']}")
    known = {one.name for one in fields(BatchRecord)}
    entries = [TaskEntry(**entry) for entry in raw.pop("tasks")]
    return BatchRecord(tasks=entries, **{name: value for name, value in raw.items() if name in known})
