"""Puts the parts of a live session together."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from agent.app.chat.approvals import PersonGate
from agent.app.chat.engine import Engine, open_engine
from agent.app.chat.glance import RepoGlance
from agent.app.chat.keeper import EngineKeeper
from agent.app.chat.live import LiveSession, Relay
from agent.app.chat.outbox import Outbox
from agent.app.chat.record import SessionRecord, open_record
from agent.app.chat.sizes import sizes_in
from agent.app.chat.turn_log import TurnLog
from agent.app.extras.extensions import Extensions, load_extensions, tool_rules
from agent.app.files.authorship import Authorship
from agent.app.files.commanded import CommandWatch
from agent.app.mcp.servers import open_mcp
from agent.app.servers.carded import completed_profile
from agent.app.servers.protocols import tried_protocol
from agent.app.servers.serving import Serving
from agent.app.servers.warm import Warmth
from agent.app.turns.confining import required_or_refused, sandbox_for
from agent.app.turns.conversation import Setting
from agent.app.turns.delegation import offers_subagents, subagent_rules
from agent.app.turns.in_view import is_in_view
from agent.app.turns.kit import tools_for
from agent.app.turns.workbench import tool_environment
from agent.config.load import LoadedSettings, find_project_root
from agent.core.errors import UsageError
from agent.core.events import Notice, QueueChanged
from agent.core.inbox import SessionInbox
from agent.core.limits import TimeLimit
from agent.core.outside_text import one_line
from agent.core.tool import Tool, ToolContext
from agent.core.worklog import WorkLog
from agent.permissions.rules import Rules, parse_rules
from agent.resources import cache_folder, config_folder, state_folder
from agent.server.record import Endpoint
from agent.session.replay import events_in

_LONGEST_TOLD = 80


async def assemble(
    workspace: Path,
    *,
    loaded: LoadedSettings,
    resume: str | None,
    fork: bool,
    serve: Callable[[LoadedSettings], Serving],
) -> LiveSession:
    """Reads and checks everything that can be wrong before anything is started. See `open_session`."""
    workspace = workspace.resolve()
    if not workspace.is_dir():
        raise UsageError(f"{workspace} is not a folder", "name the folder to work in")
    permissions = loaded.settings.permissions
    rules = parse_rules(allow=permissions.allow, ask=permissions.ask, deny=permissions.deny)
    serving = await asyncio.to_thread(serve, loaded)
    relay = Relay()
    report = _reporter(relay)
    record = await asyncio.to_thread(
        open_record, workspace, profile=serving.profile.name, resume=resume, fork=fork, report=report
    )
    watch = CommandWatch(record.ledger, record.store.folder, excluded=(state_folder(),), report=report)
    try:
        gate = _gate(workspace, serving, record, rules, relay)
        live = await _live(loaded, serve, serving, record, Authorship(record.ledger, watch), gate, relay)
    except BaseException:  # else this process would hold the session until it ends
        record.close()
        raise
    relay.connect(live)
    _warn_at_the_start(live)
    return live


async def _live(
    loaded: LoadedSettings,
    serve: Callable[[LoadedSettings], Serving],
    serving: Serving,
    record: SessionRecord,
    authorship: Authorship,
    gate: PersonGate,
    relay: Relay,
) -> LiveSession:
    workspace = gate.workspace
    helped = offers_subagents(serving.profile, loaded.settings)
    built_in, shell = tools_for(authorship, serving.profile, subagents=helped)
    await _confine(gate, loaded, relay)
    extensions = await _extensions(loaded, record, authorship, gate, relay)
    mcp = await open_mcp(
        workspace, loaded.settings, environment=dict(gate.context.environment), emit=relay.emit
    )
    gate.rules += mcp.rules + subagent_rules(helped)
    tools = extensions.with_tools(mcp.with_tools(built_in, authorship))
    cancel = asyncio.Event()
    opener = _Opener(workspace, record, authorship, tools, gate, cancel, relay)
    turns, log = await asyncio.to_thread(_earlier_work, record, serving.profile.name)
    return LiveSession(
        workspace=workspace,
        loaded=loaded,
        serve=serve,
        record=record,
        outbox=Outbox(),
        inbox=_inbox(relay),
        gate=gate,
        tools=tools,
        shell=shell,
        turns=turns,
        glance=RepoGlance(workspace),
        keeper=EngineKeeper(serving, opener.open, emit=relay.emit, arrived=relay.arrived),
        extensions=extensions,
        mcp=mcp,
        log=log,
        cancel=cancel,
        used_tokens=turns.context_tokens,
    )


async def _confine(gate: PersonGate, loaded: LoadedSettings, relay: Relay) -> None:
    """Has commands run in the sandbox. Raises ConfinementError where one is required and none works."""
    sandbox = sandbox_for(
        gate.workspace,
        loaded.settings,
        gate.context.environment,
        unattended=lambda: gate.mode == "auto",
        readable=(gate.context.spill_folder,),
        emit=relay.emit,
    )
    await required_or_refused(sandbox)
    gate.confine(sandbox, auto_allow=loaded.settings.sandbox.auto_allow)


def _inbox(relay: Relay) -> SessionInbox:
    inbox = SessionInbox(
        lambda: relay.emit(QueueChanged(steering=inbox.steering, follow_ups=inbox.follow_ups))
    )
    return inbox


def _warn_at_the_start(live: LiveSession) -> None:
    for notice in live.loaded.notices:
        live.emit(Notice(text=notice, level="warning"))
    unheard = _never_told(live.record)
    if unheard:
        live.emit(Notice(text=f"the model was never told: {unheard} (Up brings it back)", level="warning"))
    if not os.access(live.workspace, os.W_OK):
        text = f"the folder {live.workspace} is read-only, so nothing can be changed in it"
        live.emit(Notice(text=text, level="warning"))


def _never_told(record: SessionRecord) -> str:
    """The beginning of a first message that was sent, in a session killed before the model had it."""
    if record.conversation.messages:
        return ""
    asked = [str(one.get("text") or "") for one in record.old if one.get("type") == "asked"]
    return one_line(asked[-1], _LONGEST_TOLD) if asked else ""


def _earlier_work(record: SessionRecord, profile: str) -> tuple[TurnLog, WorkLog]:
    """What was done by the events of an earlier time; the conversation learns from them how large it is."""
    turns, log = TurnLog(profile), WorkLog()
    for event in events_in(record.old):
        turns.observe(event)
        log.observe(event)
    conversation = record.conversation
    sizes = sizes_in(record.old)
    conversation.tokens, conversation.measured = sizes.tokens, sizes.measured
    conversation.requested = sizes.requested
    return turns, log


async def _extensions(
    loaded: LoadedSettings,
    record: SessionRecord,
    authorship: Authorship,
    gate: PersonGate,
    relay: Relay,
) -> Extensions:
    extensions = await load_extensions(
        gate.workspace,
        loaded.settings,
        authorship,
        session_id=record.store.id,
        hook_environment=lambda: gate.context.environment,
        emit=relay.emit,
        confinement=gate.context.confinement,
    )
    gate.rules += tool_rules(extensions.shelf)
    extensions.shelf.grant = gate.grant
    extensions.shelf.is_swayed = gate.has_read
    return extensions


def _reporter(relay: Relay) -> Callable[[str], None]:
    """For lines that may come from the thread of a tool."""
    loop = asyncio.get_running_loop()

    def report(text: str) -> None:
        loop.call_soon_threadsafe(relay.emit, Notice(text=text, level="warning"))

    return report


@dataclass(frozen=True, slots=True)
class _Opener:
    """Comes to an engine for a session, the first and any later one."""

    workspace: Path
    record: SessionRecord
    authorship: Authorship
    tools: tuple[Tool, ...]
    gate: PersonGate
    cancel: asyncio.Event
    relay: Relay

    async def open(self, serving: Serving) -> Engine:
        engine = await open_engine(
            serving,
            lambda endpoint, protocol: self._setting(serving, endpoint, protocol),
            self.tools,
            self.record.conversation.messages,
            self.relay.emit,
            _trial,
        )
        messages = self.record.conversation.messages
        if messages:
            await Warmth(serving, engine.endpoint).bring_back(messages)
        else:
            engine.warm_up()
        # Which variables hold keys depends on the profile.
        environment = tool_environment(serving.key_variables())
        self.gate.context = replace(self.gate.context, environment=environment)
        return engine

    def _setting(self, serving: Serving, endpoint: Endpoint, protocol: str) -> Setting:
        return Setting(
            workspace=self.workspace,
            settings=serving.loaded.settings,
            profile=completed_profile(serving, endpoint),
            endpoint=endpoint,
            protocol=protocol,
            ledger=self.record.ledger,
            authorship=self.authorship,
            spill_folder=self.record.store.folder / "output",
            key_variables=serving.key_variables(),
            deadline=TimeLimit(0),
            cancel=self.cancel,
        )


async def _trial(setting: Setting) -> tuple[str, str]:
    """A cancelled turn is no reason to stop finding out how this server is spoken to."""
    return await tried_protocol(replace(setting, cancel=asyncio.Event()))


def _gate(workspace: Path, serving: Serving, record: SessionRecord, rules: Rules, relay: Relay) -> PersonGate:
    settings = serving.loaded.settings
    context = ToolContext(
        workspace=workspace,
        ledger=record.ledger,
        spill_folder=record.store.folder / "output",
        emit=lambda _: None,
        environment=tool_environment(serving.key_variables()),
        shell_timeout_seconds=settings.limits.shell_seconds,
        is_in_view=lambda name, text: is_in_view(record.conversation.messages, workspace, name, text),
        cache_folder=cache_folder(),
    )
    return PersonGate(
        workspace=workspace,
        mode=settings.permissions.mode,
        rules=rules,
        protected=(config_folder(), state_folder()),
        context=context,
        emit=relay.emit,
        keep_rule=lambda rule: asyncio.to_thread(_keep_rule, rule, workspace),
    )


def _keep_rule(rule: str, workspace: Path) -> Path:
    from agent.config.allow import allow_always

    return allow_always(rule, find_project_root(workspace), os.environ)
