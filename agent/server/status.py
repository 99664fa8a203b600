"""What can be said about the servers that were started here. `agent server status` has to answer at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.server import record as records
from agent.server.identity import resident_bytes, seconds_running
from agent.server.probe import busy_slots
from agent.server.record import Record

ShownState = Literal["ready", "starting", "stopping", "not answering", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """Everything that a panel about one server shows.

    `busy_slots` is None when the server does not say, which it does not while it reads a long prompt.
    `memory_bytes` is what the process holds in RAM. `start_seconds` is how long it took to become ready.
    `speculation` is the kind that its profile names; `speculates` whether it was seen to draft with a model,
    None where no model drafts. `degraded`: it runs without the draft of its profile, with which it crashed or
    which did not pay. `draft_limit`: it drafts at most so many tokens at once, less than its profile says,
    because that did not pay; 0 = as the profile says. `batch_limit`: it reads so many tokens at once, because
    those of its profile take too long here; 0 = as the profile says.
    `findings` are what was noticed after the start (`level`, `code`, `message`, `hint`); `problem` is why it
    is no longer there.
    """

    profile: str
    state: ShownState
    engine: str
    version: str
    binary: str
    pid: int
    host: str
    port: int
    url: str
    context_tokens: int
    slots: int
    busy_slots: int | None
    speculation: str
    speculates: bool | None
    degraded: bool
    draft_limit: int
    batch_limit: int
    memory_bytes: int | None
    started: float
    uptime_seconds: float
    start_seconds: float
    findings: tuple[Mapping[str, str], ...]
    problem: str
    fingerprint: str
    log_file: str


def all_statuses(runtime_folder: Path) -> list[ServerStatus]:
    """One per record, oldest server first. Asks each server, which takes up to a few seconds."""
    return [panel(record) for record in records.list_records(runtime_folder)]


def panel(record: Record) -> ServerStatus:
    """What is to be known about one server now. Blocks, a few milliseconds when the server is well."""
    state = _state(record)
    return ServerStatus(
        profile=record.profile,
        state=state,
        engine=record.engine,
        version=record.version,
        binary=record.binary,
        pid=record.pid,
        host=record.host,
        port=record.port,
        url=record.base_url,
        context_tokens=record.context_tokens,
        slots=record.slots,
        busy_slots=busy_slots(record) if state == "ready" else None,
        speculation=record.speculation,
        speculates=record.speculates,
        degraded=record.degraded,
        draft_limit=record.draft_limit,
        batch_limit=record.batch_limit,
        memory_bytes=None if state == "ended" else resident_bytes(record.pid),
        started=record.started,
        uptime_seconds=0.0 if state == "ended" else round(seconds_running(record.pid, record.started), 1),
        start_seconds=record.start_seconds,
        findings=record.findings,
        problem=_problem(record) if state == "ended" else "",
        fingerprint=record.fingerprint,
        log_file=record.log_file,
    )


def _state(record: Record) -> ShownState:
    if not record.is_running:
        return "ended"
    if record.state == "stopping":
        return "stopping"
    if record.is_healthy:
        return "ready" if record.state == "ready" else "starting"
    return "starting" if record.state == "starting" else "not answering"


def _problem(record: Record) -> str:
    from agent.server.logs import classify, read_tail

    failure = classify(read_tail(Path(record.log_file)), None)
    return f"{failure.summary}: {failure.line}" if failure.line else failure.summary
