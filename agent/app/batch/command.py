"""A batch from end to end: a new one or one that goes on, its lines, its table and its exit code."""

import asyncio
import gc
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.app.batch.output import exit_code_of, hints, write_result
from agent.app.batch.plan import plan_batch
from agent.app.batch.record import BatchRecord, load_batch
from agent.app.batch.runner import BatchRunner
from agent.app.interruption import ended_by_signals
from agent.app.run.output import error_record
from agent.app.run.request import RunRequest
from agent.core.errors import AgentError, ExitCode, UsageError
from agent.headless.text import printable
from agent.server.locks import released_at_end


def run_batch(
    request: RunRequest,
    sources: Sequence[str],
    *,
    jobs: int | None,
    resume: str | None,
) -> int:
    """Runs a batch; returns the exit code, see `exit_code_of`.

    Args:
        request: the flags for all tasks.
        jobs: how many at once at the most, None for one, or for as many as before.
        resume: the id of a batch to go on with, or `last`.

    Raises:
        AgentError: nothing could be begun; in the JSON forms the result is printed before.
    """
    try:
        _check(request, sources, jobs, resume)
        return asyncio.run(_run(request, sources, jobs, resume))
    except AgentError as error:
        if request.output != "text":
            print(json.dumps(error_record(error)))
        raise


def _check(request: RunRequest, sources: Sequence[str], jobs: int | None, resume: str | None) -> None:
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs has to be at least 1, not {jobs}", "leave it out for one after the other")
    if request.prompt is not None:
        raise UsageError("a batch takes task files, no -p", "write each task into a file")
    if resume is not None and (sources or request.branch or request.directory):
        raise UsageError(
            "--resume-batch goes on with the tasks, the branches and the folder that the batch has",
            "leave out the tasks, --branch and -C",
        )
    if resume is None and not sources:
        raise UsageError("no task was given", "agent run a.md b.md --jobs 2")


async def _run(request: RunRequest, sources: Sequence[str], jobs: int | None, resume: str | None) -> int:
    gc.enable()
    cancel = asyncio.Event()
    with ended_by_signals(cancel):
        if resume is None:
            record, notes = await plan_batch(request, sources, jobs or 1)
        else:
            record, notes = load_batch(resume), []
        with released_at_end(record.lock()):
            if resume is not None:
                record = _going_on(record.id, jobs)
            return await _run_locked(request, record, notes, cancel)


def _going_on(batch_id: str, jobs: int | None) -> BatchRecord:
    """The batch as it is now that nobody else has it: another process may have gone on with it before."""
    record = load_batch(batch_id)
    if not Path(record.root).is_dir():
        raise UsageError(f"the repository of the batch is gone: {record.root}", "begin a new batch")
    record.jobs = jobs or record.jobs
    return record


async def _run_locked(
    request: RunRequest, record: BatchRecord, notes: Sequence[str], cancel: asyncio.Event
) -> int:
    runner = BatchRunner(
        record=record,
        form=request.output,
        say=_say,
        hand_on=_Lines(cancel).write if request.output == "jsonl" else None,
        cancel=cancel,
    )
    left = sum(entry.state != "done" for entry in record.tasks)
    _say(f"batch {record.id}: {left} of {len(record.tasks)} tasks to do, at most {record.jobs} at once")
    for note in notes:
        _say(note)
    await runner.run()
    code = exit_code_of(record, interrupted=cancel.is_set())
    for hint in hints(record):
        _say(hint)
    try:
        write_result(request.output, record, code, sys.stdout)
    except OSError:
        _to_nowhere(sys.stdout.fileno())
        return code or int(ExitCode.NOT_SOLVED)
    return code


class _Lines:
    """JSON lines on stdout. Whose reader has left hears of nothing any more, so the batch ends."""

    def __init__(self, cancel: asyncio.Event) -> None:
        self._cancel = cancel

    def write(self, record: dict[str, Any]) -> None:
        try:
            sys.stdout.write(json.dumps(record) + "\n")
            sys.stdout.flush()
        except OSError:
            _to_nowhere(sys.stdout.fileno())
            self._cancel.set()


def _say(text: str) -> None:
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except OSError:
        _to_nowhere(sys.stderr.fileno())


def _to_nowhere(descriptor: int) -> None:
    """What is still in the stream's buffer would fail again when the program ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
