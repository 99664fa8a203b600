"""Going over to another profile inside of a session, and what is known of the present server."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent.app.chat.engine import Engine
from agent.app.chat.live import LiveSession
from agent.app.servers.serving import Serving
from agent.app.services.accounts import account_for
from agent.config.layers import Origin
from agent.core.errors import UsageError
from agent.core.events import Notice, ServerState
from agent.resources import runtime_folder
from agent.server.probe import stays_busy
from agent.server.record import Record

_LOG_LINES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSwitch:
    """What going over to a profile costs: the whole conversation is evaluated again.

    `seconds` is that by the speed of the last prompt of `measured_with`, None where nothing was measured
    in this session. The time to start a server comes on top where `is_running` is false.
    """

    profile: str
    model: str
    tokens: int
    seconds: float | None
    measured_with: str
    is_running: bool
    applied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPanel:
    """`pid`, `log_file` and `memory_bytes` are None for a server of somebody else; `log` has its last lines.

    `findings` are what was noticed after its start: `level`, `code`, `message`, `hint`.
    """

    state: str
    profile: str
    engine: str
    model: str
    url: str
    pid: int | None
    context_tokens: int
    slots: int
    tool_protocol: str
    prefill_rate: float | None
    log_file: Path | None
    log: tuple[str, ...]
    memory_bytes: int | None = None
    speculation: str = ""
    findings: tuple[Mapping[str, str], ...] = ()


async def go_over(live: LiveSession, name: str, *, apply: bool) -> ProfileSwitch:
    """Says what it costs, and does it if `apply`. The conversation is kept.

    Raises:
        UsageError: there is no such profile.
        ServerError, ModelFileError: its server does not come up; the present profile is kept.
    """
    serving = await asyncio.to_thread(_serving_of, live, name)
    target = serving.profile.target
    report = await account_for(live)
    before = live.keeper.serving.profile.name
    measured = next((one for one in (serving.profile.name, before) if live.turns.prefill_rate(one)), "")
    rate = live.turns.prefill_rate(measured) if measured else None
    tokens = max(report.used, report.total)
    switch = ProfileSwitch(
        profile=serving.profile.name,
        model=target.file if target else serving.profile.model or "",
        tokens=tokens,
        seconds=tokens / rate if rate else None,
        measured_with=measured,
        is_running=await asyncio.to_thread(serving.running) is not None or not serving.is_managed,
    )
    if not apply:
        return switch
    engine = await live.keeper.change(serving)
    live.loaded = serving.loaded
    if live.record.conversation.messages:
        live.suit(engine)
    live.emit(Notice(text=f"profile {serving.profile.name} answers from now on"))
    return replace(switch, applied=True)


async def with_a_draft_that_pays(live: LiveSession, engine: Engine) -> Engine:
    """The engine for the next turn: another one if drafting did not pay and the settings want that changed.

    Raises ServerError, ModelFileError or UsageError.
    """
    speed = live.speed
    if speed is None or not speed.wants_change or engine.serving.degraded:
        return engine
    change = await speed.change(engine.endpoint, engine.model, live.emit)
    if change is None:
        text = "the server keeps its draft, because another program uses it"
        live.emit(Notice(text=text, level="warning"))
        return engine
    live.emit(change.event)
    if change.endpoint is None:
        engine.serving = change.serving
        return engine
    return await live.keeper.change(change.serving)


def _serving_of(live: LiveSession, name: str) -> Serving:
    loaded = live.loaded
    settings = loaded.settings.model_copy(update={"profile": name})
    origins = {**loaded.origins, "profile": Origin("command line", "profile")}
    return live.serve(replace(loaded, settings=settings, origins=origins))


async def start_server(live: LiveSession) -> None:
    """Raises ServerError, ModelFileError or UsageError."""
    await live.keeper.ready()


async def stop_server(live: LiveSession, busy: Callable[[Record], bool] = stays_busy) -> None:
    """Stops the server if it is one of ours; the next prompt starts it again.

    Raises:
        UsageError: it is somebody else's, it answers somebody else, or none is there.
    """
    engine = live.keeper.engine
    record = engine.serving.record_of(engine.endpoint) if engine else None
    if record is None:
        raise UsageError("there is no server of ours that could be stopped")
    from agent.server import process

    if await asyncio.to_thread(busy, record):
        raise UsageError(
            "the server is answering another session, so it is left running",
            f"`agent server stop --force {record.profile}` ends that too",
        )
    await live.keeper.forget()
    await process.stop_server(record, runtime_folder())
    live.emit(ServerState(state="stopped", detail="stopped by the user"))


async def panel_of(live: LiveSession) -> ServerPanel:
    """What a person may want to know of the server."""
    from agent.server.identity import resident_bytes

    engine, serving = live.keeper.engine, live.keeper.serving
    endpoint = engine.endpoint if engine else None
    log_file = endpoint.log_file if endpoint else None
    record = engine.serving.record_of(engine.endpoint) if engine else None
    return ServerPanel(
        state=live.server_state,
        profile=serving.profile.name,
        engine=serving.profile.engine,
        model=engine.model_name if engine else "",
        url=endpoint.base_url if endpoint else "",
        pid=endpoint.pid if endpoint else None,
        context_tokens=endpoint.context_tokens if endpoint else 0,
        slots=endpoint.slots if endpoint else 0,
        tool_protocol=engine.protocol.name if engine else "",
        prefill_rate=live.turns.prefill_rate(serving.profile.name),
        log_file=log_file,
        log=await asyncio.to_thread(_last_lines, log_file),
        memory_bytes=resident_bytes(record.pid) if record else None,
        speculation=_drafting(engine.serving if engine else serving),
        findings=record.findings if record else (),
    )


def _drafting(serving: Serving) -> str:
    kind = serving.profile.speculation.kind
    return f"{kind}, at most {serving.draft_limit} at once" if serving.draft_limit else kind


def _last_lines(log_file: Path | None) -> tuple[str, ...]:
    from agent.server.logs import read_tail

    return tuple(read_tail(log_file).splitlines()[-_LOG_LINES:]) if log_file else ()
