"""Stops a server of ours, and says why one is gone that nobody stopped."""

import asyncio
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent.core.errors import ServerError
from agent.server import probe
from agent.server import record as records
from agent.server.identity import collect, collect_ended, command_line, send_signal
from agent.server.logs import classify, read_tail
from agent.server.record import Record

StopOutcome = Literal["stopped", "was-not-running", "not-ours"]
_POLL_SECONDS = 0.05
_SIGNALS = ((signal.SIGTERM, 0.6), (signal.SIGTERM, 0.4), (signal.SIGKILL, 1.0))
"""Each with the share of the patience that follows it. The first signal lets a running request end, and hangs
on a client that does not read; the second one ends llama-server at once."""


async def stop_server(record: Record, runtime_folder: Path, grace_seconds: float = 5.0) -> StopOutcome:
    """Stops a server of ours: asks it to end, asks again, and ends it after `grace_seconds`.

    A process that only happens to have the recorded number is left alone, and the record is forgotten.
    How the process ends does not matter after our own signal: 0, 1 and -15 are all usual.

    Raises:
        ServerError: the process does not go away.
    """
    if not record.is_running:
        collect(record.pid)
        records.remove_record(record, runtime_folder)
        return "was-not-running"
    if not await asyncio.to_thread(_is_ours, record):
        records.remove_record(record, runtime_folder)
        return "not-ours"
    # Who uses the server sees by this that it did not crash. On a full disk they take it for a crash.
    with suppress(OSError):
        records.write_record(replace(record, state="stopping"), runtime_folder)
    for number, share in _SIGNALS:
        send_signal(record.pid, number)
        if await _ended_within(record, grace_seconds * share):
            records.remove_record(record, runtime_folder)
            return "stopped"
    raise ServerError(
        f"the server of profile {record.profile!r} (process {record.pid}) does not end",
        "it may hang in the system; look at it with `ps`",
    )


def explain_end(record: Record) -> ServerError | None:
    """Why a server that was ready is no longer there; None while its process runs."""
    exit_status = collect(record.pid)
    if exit_status is None and record.is_running:
        return None
    if exit_status is None:
        exit_status = collect_ended(record.pid)
    failure = classify(read_tail(Path(record.log_file)), exit_status)
    quoted = f": {failure.line}" if failure.line else ""
    return ServerError(
        f"the server of profile {record.profile!r} is gone: {failure.summary}{quoted}",
        f"{failure.remedy}; the next start brings a new one (log: {record.log_file})",
    )


def _is_ours(record: Record) -> bool:
    # The command line names the spec or the key file of this very server; the key is the second opinion.
    words = command_line(record.pid)
    if record.spec_file in words or record.key_file in words:
        return True
    return probe.key_is_accepted(record) is True


async def _ended_within(record: Record, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        collect(record.pid)
        if not record.is_running:
            return True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
