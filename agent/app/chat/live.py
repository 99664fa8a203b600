"""The parts of a live session, and the one way that events take in it."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from agent.app.chat.approvals import PersonGate
from agent.app.chat.engine import Engine
from agent.app.chat.glance import RepoGlance
from agent.app.chat.keeper import EngineKeeper
from agent.app.chat.moment import Moment
from agent.app.chat.outbox import Outbox
from agent.app.chat.record import SessionRecord
from agent.app.chat.turn_log import TurnLog
from agent.app.extras.extensions import Extensions
from agent.app.mcp.servers import McpServers
from agent.app.servers.foreign import remarks
from agent.app.servers.memory import looking_at
from agent.app.servers.serving import Serving
from agent.app.servers.speed_guard import SpeedGuard
from agent.app.turns.prompt_head import PromptHead, head_in, head_of, head_record, system_to_keep, why_changed
from agent.config.load import LoadedSettings
from agent.core.events import (
    CompactionFinished,
    CompactionStarted,
    ContextStatus,
    Event,
    Notice,
    PrefixBroken,
    Rewound,
    SessionStarted,
    StepStarted,
    TurnFinished,
    TurnStarted,
    to_record,
)
from agent.core.inbox import SessionInbox
from agent.core.reuse import ReuseWatch
from agent.core.tool import Tool
from agent.core.worklog import WorkLog
from tools.shell import ShellTool

# Deltas are in the messages, queues and fill levels are about this moment only.
_NOT_RECORDED = frozenset(
    {
        "text_delta",
        "reasoning_delta",
        "tool_call_delta",
        "prefill",
        "tool_output",
        "queue_changed",
        "context_status",
    }
)


class Relay:
    """Takes events before the session is whole, and hands them on once it is."""

    def __init__(self) -> None:
        self._early: list[Event] = []
        self._target: LiveSession | None = None

    def emit(self, event: Event) -> None:
        if self._target is None:
            self._early.append(event)
        else:
            self._target.emit(event)

    def arrived(self, engine: Engine) -> None:
        if self._target is not None:
            self._target.arrived(engine)

    def connect(self, live: "LiveSession") -> None:
        self._target = live
        for event in self._early:
            live.emit(event)
        self._early.clear()


@dataclass(slots=True, kw_only=True)
class LiveSession:
    """What a session consists of.

    `cancel` ends the running turn, each of `commands` a command of the person's. `changing` is held by
    services that change files or the engine; a turn begins after them. `speed` watches whether drafting
    pays, `reuse` what the server keeps, `moment` how far the running step is.
    `log` has what is known of all turns; the turn loop adds what happens in a turn.
    `began` wakes who waits for a turn to begin. `slot_tokens` are those that the server's slot holds where a
    question beside the work stands behind the conversation, else 0. `is_left_off` says that the server may
    still be at a request outside of turns that was interrupted. `is_planning` says that the model was asked
    for a plan, and for nothing else since. `today` is the date where the person is.
    """

    workspace: Path
    loaded: LoadedSettings
    serve: Callable[[LoadedSettings], Serving]
    record: SessionRecord
    outbox: Outbox
    inbox: SessionInbox
    gate: PersonGate
    tools: tuple[Tool, ...]
    shell: ShellTool
    turns: TurnLog
    glance: RepoGlance
    keeper: EngineKeeper
    extensions: Extensions
    mcp: McpServers
    log: WorkLog
    server_state: str = "starting"
    used_tokens: int = 0
    slot_tokens: int = 0
    is_left_off: bool = False
    is_running: bool = False
    began: asyncio.Event = field(default_factory=asyncio.Event)
    is_planning: bool = False
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    commands: set[asyncio.Event] = field(default_factory=set)
    speed: SpeedGuard | None = None
    reuse: ReuseWatch = field(default_factory=ReuseWatch)
    moment: Moment = field(default_factory=Moment)
    today: Callable[[], date] = date.today
    _remarked: set[str] = field(default_factory=set)
    _head: PromptHead | None = None

    def emit(self, event: Event) -> None:
        """What every event passes through: the figures, the session file, the front."""
        self.turns.observe(event)
        self.moment.observe(event)
        if isinstance(event, TurnStarted | TurnFinished | Rewound | CompactionFinished):
            self.log.observe(event)
        if isinstance(event, StepStarted | Rewound | CompactionStarted):
            self.slot_tokens = 0
        if event.type == "server_state":
            self.server_state = event.state
        elif event.type not in _NOT_RECORDED:
            self.record.store.append(to_record(event))
        self.outbox.put(event)
        for remark in (self.speed.observe(event) if self.speed else None, self.reuse.observe(event)):
            if remark is not None:
                self.emit(remark)

    def arrived(self, engine: Engine) -> None:
        """Tells about a server that has come up, and that its key is a secret."""
        endpoint = engine.endpoint
        self.record.store.hide(endpoint.api_key)
        engine.after_move = self._moved
        self.speed = engine.speed
        self.reuse.moved(looking_at(engine.serving, endpoint))
        self.emit(
            SessionStarted(
                session_id=self.record.store.id,
                workspace=str(self.workspace),
                profile=engine.serving.profile.name,
                model=engine.model_name,
                context_tokens=endpoint.context_tokens,
                tool_protocol=engine.protocol.name,
            )
        )
        for remark in remarks(endpoint, engine.serving.profile, engine.protocol.name):
            if remark not in self._remarked:
                self._remarked.add(remark)
                self.emit(Notice(text=remark, level="warning"))

    def _moved(self, engine: Engine) -> None:
        """A rescue has put another server in the place of the one that arrived."""
        self.record.store.hide(engine.endpoint.api_key)
        self.reuse.moved(looking_at(engine.serving, engine.endpoint))
        if engine.serving.degraded:
            self.speed = None  # there is no draft any more that could be to blame

    def leave_off(self) -> None:
        """A request outside of turns was interrupted: the server is looked at a little later."""
        self.is_left_off = True
        self.began.set()

    def suit(self, engine: Engine) -> None:
        """Makes the conversation one that `engine` can go on with."""
        conversation = self.record.conversation
        head, before = (
            head_of(engine.protocol, engine.endpoint.profile),
            self._head or head_in(self.record.old),
        )
        kept = system_to_keep(conversation.messages, before, head)
        messages, cause = engine.begin(conversation.messages, kept)
        if not conversation.messages:
            conversation.add(messages[0])
        elif cause:
            conversation.begin_again(messages, cause)
        why = (why_changed(before, head) if before else "") or cause
        if why and conversation.messages[1:]:
            self.emit(PrefixBroken(cause=why))
        if head != before:
            self._head = head
            self.record.store.append(head_record(head))

    def takes_up(self, tokens: int) -> None:
        """The conversation has so many tokens from now on."""
        conversation = self.record.conversation
        self.used_tokens = tokens
        conversation.tokens, conversation.measured = tokens, len(conversation.messages) if tokens else 0
        engine = self.keeper.engine
        self.emit(ContextStatus(used=tokens, window=engine.model.context_tokens if engine else 0))

    def environment(self) -> dict[str, str]:
        """The person's own environment, for the person's own commands."""
        return dict(os.environ)
