"""What a batch prints: lines with the task's name on stderr, one table or object at the end."""

import json
import shlex
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from agent.app.batch.record import BatchRecord, TaskEntry
from agent.app.run.request import OutputForm
from agent.core.errors import ExitCode

_NEVER_RUN = "not begun"


class NamedLines:
    """A text stream whose lines begin with the name of a task. Half lines wait for their end."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self.encoding = stream.encoding
        self._start = f"[{name}] "
        self._stream = stream
        self._open = ""

    def write(self, text: str) -> int:
        *lines, self._open = (self._open + text).split("\n")
        if lines:
            self._stream.write("".join(f"{self._start}{line}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        """Lines of several tasks come in between, so none can be rewritten in place."""
        return False

    def fileno(self) -> int:
        return self._stream.fileno()


class ResultTaker:
    """Takes the JSON lines of one task: keeps its result, hands on all of them with the task's name."""

    encoding = "utf-8"

    def __init__(self, name: str, hand_on: Callable[[dict[str, Any]], None] | None) -> None:
        self.result: dict[str, Any] | None = None
        self._name = name
        self._hand_on = hand_on

    def write(self, text: str) -> int:
        for line in text.splitlines():
            record = json.loads(line)
            if record["type"] == "result":
                self.result = record
            if self._hand_on is not None:
                self._hand_on({"task": self._name, **record})
        return len(text)

    def flush(self) -> None:
        return


def exit_code_of(record: BatchRecord, *, interrupted: bool) -> int:
    """130 after an interruption, else the highest code of all tasks; those that were not begun count as 1."""
    if interrupted:
        return int(ExitCode.INTERRUPTED)
    return max((_code(entry) for entry in record.tasks), default=0)


def summary_record(record: BatchRecord, exit_code: int) -> dict[str, Any]:
    """The object at the end of the JSON forms."""
    return {
        "type": "batch",
        "batch_id": record.id,
        "exit_code": exit_code,
        "done": sum(entry.state == "done" for entry in record.tasks),
        "commit": record.commit,
        "tasks": [
            {
                "name": entry.name,
                "file": entry.source,
                "state": entry.state,
                "branch": None if entry.branch_gone else entry.branch,
                "worktree": entry.worktree if entry.kept else None,
                "result": entry.result,
            }
            for entry in record.tasks
        ],
    }


def table(record: BatchRecord) -> list[str]:
    """A line for each task, under a line of headings."""
    rows = [("task", "result", "check", "steps", "seconds", "files", "branch")]
    rows += [_row(entry) for entry in record.tasks]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def hints(record: BatchRecord) -> list[str]:
    """What there is to do after a batch."""
    kept = [entry for entry in record.tasks if entry.kept]
    lines = [f"{entry.name}: its work is in {entry.worktree}" for entry in kept]
    lines += [f"{entry.name}: `{_throwing_away(record, entry)}` throws it away" for entry in kept]
    if any(entry.state != "done" for entry in record.tasks):
        lines.append(f"`agent run --resume-batch {record.id}` goes on with what is not done")
    return lines


def _throwing_away(record: BatchRecord, entry: TaskEntry) -> str:
    git = f"git -C {shlex.quote(record.root)}"
    folder, branch = shlex.quote(entry.worktree), shlex.quote(entry.branch)
    return f"{git} worktree remove --force {folder} && {git} branch -D {branch}"


def write_result(form: OutputForm, record: BatchRecord, exit_code: int, stream: TextIO) -> None:
    """Raises OSError when nobody takes it."""
    if form == "text":
        _write(table(record), stream)
    else:
        _write([json.dumps(summary_record(record, exit_code))], stream)


def _write(lines: Iterable[str], stream: TextIO) -> None:
    stream.write("".join(f"{line}\n" for line in lines))
    stream.flush()


def _row(entry: TaskEntry) -> tuple[str, ...]:
    result = entry.result or {}
    passed = result.get("check_passed")
    check = "" if passed is None else "passed" if passed else "failed"
    words = _NEVER_RUN if entry.state == "waiting" else entry.state.replace("_", " ")
    reason = str(result.get("reason", "")).replace("_", " ")
    if entry.state == "not_done":
        words = reason if reason not in ("", "done") else f"exit code {_code(entry)}"
    seconds = result.get("seconds")
    files = result.get("files_changed")
    return (
        entry.name,
        words,
        check,
        str(result.get("steps", "")),
        f"{seconds:.0f}" if isinstance(seconds, int | float) else "",
        str(len(files)) if isinstance(files, list) else "",
        entry.branch if entry.result and not entry.branch_gone else "",
    )


def _code(entry: TaskEntry) -> int:
    code = entry.result.get("exit_code") if entry.result else None
    return code if isinstance(code, int) else int(ExitCode.NOT_SOLVED)
