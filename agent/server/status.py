"""What can be said about the servers that were started here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.server import record as records
from agent.server.identity import resident_bytes
from agent.server.probe import busy_slots
from agent.server.record import Record

ShownState = Literal["ready", "starting", "not answering", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """`busy_slots` is None when the server does not say, which it does not while it reads a long prompt."""

    profile: str
    state: ShownState
    pid: int
    port: int
    context_tokens: int
    slots: int
    busy_slots: int | None
    memory_bytes: int | None
    started: float
    fingerprint: str
    log_file: str


def all_statuses(runtime_folder: Path) -> list[ServerStatus]:
    """One per record, oldest server first. Asks each server, which takes up to a few seconds."""
    return [status_of_record(record) for record in records.list_records(runtime_folder)]


def status_of_record(record: Record) -> ServerStatus:
    state = _state(record)
    return ServerStatus(
        profile=record.profile,
        state=state,
        pid=record.pid,
        port=record.port,
        context_tokens=record.context_tokens,
        slots=record.slots,
        busy_slots=busy_slots(record) if state == "ready" else None,
        memory_bytes=None if state == "ended" else resident_bytes(record.pid),
        started=record.started,
        fingerprint=record.fingerprint,
        log_file=record.log_file,
    )


def _state(record: Record) -> ShownState:
    if not record.is_running:
        return "ended"
    if record.is_healthy:
        return "ready" if record.state == "ready" else "starting"
    return "starting" if record.state == "starting" else "not answering"
