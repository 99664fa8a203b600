"""A profile at work in a live session: its server, the model behind it, and what a turn needs of both."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from agent.app.background import in_background
from agent.app.chat.approvals import PersonGate
from agent.app.extras.extensions import Extensions
from agent.app.servers.foreign import require_window
from agent.app.servers.rescue import Rescuer
from agent.app.servers.serving import Serving
from agent.app.servers.speed_guard import SpeedGuard, guard_for
from agent.app.servers.warm import Warmth, head_of
from agent.app.turns.conversation import Setting, model_for, system_prompt
from agent.app.turns.delegation import Delegator
from agent.app.turns.result_room import compactor_for, result_limit, room_guards
from agent.app.turns.tool_pictures import shown_to
from agent.core.errors import AgentError
from agent.core.events import Event, Notice, ServerState
from agent.core.executor import ToolExecutor
from agent.core.inbox import Inbox
from agent.core.limits import CallLimit, RepetitionGuard, SharedLimits, StepLimit, TokenLimit
from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolCall
from agent.core.tool import Tool
from agent.core.turn import TurnServices
from agent.core.worklog import WorkLog
from agent.llm.client import ChatModel
from agent.llm.connection import load
from agent.llm.probe import protocol_named
from agent.llm.protocol import ToolProtocol
from agent.server.record import Endpoint
from agent.session.ledger import SessionLedger
from agent.session.store import secrets_in
from agent.session.transcript import last_reply_number

_LONGEST_REPLY = 8192


@dataclass(slots=True)
class HeadProgress:
    """How far the beginning of a conversation is read. Only who waits for it is told: `listener`."""

    last: Event | None = None
    listener: Callable[[Event], None] | None = None

    def note(self, event: Event) -> None:
        self.last = event
        if self.listener is not None:
            self.listener(event)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Tells where it stands, and from now on each step."""
        self.listener = listener
        if self.last is not None:
            listener(self.last)


@dataclass(slots=True, kw_only=True)
class Engine:
    """A server that answers, and the model behind it. A rescue puts another server in its place.

    `after_move` is called when it has. `warming` reads the beginning of a new conversation, `warmth_so_far`
    says how far it is.
    """

    serving: Serving
    endpoint: Endpoint
    protocol: ToolProtocol
    model: ChatModel
    rescuer: Rescuer | None = None
    speed: SpeedGuard | None = None
    after_move: Callable[["Engine"], None] | None = None
    warming: asyncio.Task[None] | None = None
    warmth_so_far: HeadProgress = field(default_factory=HeadProgress)

    def moved(self, serving: Serving, endpoint: Endpoint) -> None:
        """Another server answers from now on."""
        self.serving, self.endpoint = serving, endpoint
        if self.after_move is not None:
            self.after_move(self)

    @property
    def system_text(self) -> str:
        return self.protocol.system_text(system_prompt())

    @property
    def model_name(self) -> str:
        target = self.serving.profile.target
        return target.file if target else self.serving.profile.model or self.endpoint.base_url

    def services(
        self,
        tools: Sequence[Tool],
        gate: PersonGate,
        inbox: Inbox,
        cancel: asyncio.Event,
        extensions: Extensions,
        ledger: SessionLedger,
        log: WorkLog,
    ) -> TurnServices:
        """What one turn works with. A person is there: no check, no guide, no limit of time."""
        if self.rescuer is not None:
            self.rescuer.begin_turn()
        settings = self.serving.loaded.settings
        tokens = self.reply_tokens
        compactor = compactor_for(self.model, settings, tokens, log)
        limits = settings.limits
        calls = CallLimit(limits.max_tool_calls)
        shared = SharedLimits(limits.max_steps, limits.max_tokens, calls=calls)
        executor = ToolExecutor(
            tools,
            gate=extensions.guarded(gate),
            context=replace(
                gate.context,
                delegate=self._delegator(tools, gate, extensions, ledger, shared),
                picture=shown_to(self.endpoint, gate.context.spill_folder.parent),
            ),
            result_limit=lambda: result_limit(self.model, tokens, compactor),
        )
        guards = [
            StepLimit(limits.max_steps),
            calls,
            TokenLimit(limits.max_tokens),
            *room_guards(self.model, tokens, compactor),
            RepetitionGuard(),
            shared,
        ]
        return TurnServices(
            model=self.model,
            executor=executor,
            guards=guards,
            verifier=extensions.verifying(None),
            inbox=inbox,
            compactor=compactor,
            reply_tokens=tokens,
            cancel=cancel,
        )

    def _delegator(
        self,
        tools: Sequence[Tool],
        gate: PersonGate,
        extensions: Extensions,
        ledger: SessionLedger,
        limits: SharedLimits,
    ) -> Delegator:
        return Delegator(
            model=self.model,
            tools=tools,
            gate=extensions.guarded(gate),
            mode=lambda: gate.mode,
            context=gate.context,
            ledger=ledger,
            limits=limits,
            deadline=None,
            reply_tokens=self.reply_tokens,
            secrets=(self.endpoint.api_key, *secrets_in(os.environ)),
            settings=self.serving.loaded.settings,
        )

    @property
    def reply_tokens(self) -> int:
        """A person who reads along can end a reply, so it may be longer than where nobody does.

        What somebody has set, or the profile says, holds nevertheless.
        """
        settings = self.serving.loaded.settings
        tokens = settings.limits.reply_tokens
        if self.serving.loaded.origins["limits.reply_tokens"].layer == "default":
            tokens = max(tokens, min(_LONGEST_REPLY, self.model.context_tokens // 4))
        return min(tokens, self.serving.profile.model_card.max_reply_tokens or tokens)

    def begin(
        self, messages: Sequence[Message], kept: SystemMessage | None = None
    ) -> tuple[list[Message], str]:
        """The conversation as this model has to see it, and why it is not the one given ("" if it is).

        `kept` is an earlier system text that still holds.

        The system text is part of how tools are called, and replies have to show calls the way they are
        made here; else a model learns from its own history to make them wrong.
        """
        system = kept or SystemMessage(self.system_text)
        if not messages:
            return [system], ""
        rest = list(messages[1:] if isinstance(messages[0], SystemMessage) else messages)
        if self.protocol.name == "constrained":
            rest = [_with_calls_in_text(message) for message in rest]
        begun: list[Message] = [system, *rest]
        return begun, "" if begun == list(messages) else "the model is told about its tools in another way"

    def warm_up(self) -> None:
        """Begins to read what every conversation here starts with, while the person still writes."""
        head = head_of(self.protocol, self.system_text, "")
        warmth = Warmth(self.serving, self.endpoint, self.warmth_so_far.note)
        self.warming = asyncio.create_task(warmth.read_head(head))

    async def warmed_up(self, emit: Callable[[Event], None]) -> None:
        """Waits for that: a second request beside it would read the same again. Cancelled, it stops.

        `emit` is told how far it is, which may take minutes on a slow machine.
        """
        if self.warming is not None:
            self.warmth_so_far.listen(emit)
            await asyncio.gather(self.warming, return_exceptions=True)
            self.warming = None

    async def close(self) -> None:
        if self.warming is not None:
            self.warming.cancel()
            await asyncio.gather(self.warming, return_exceptions=True)
        await self.model.close()


async def open_engine(
    serving: Serving,
    setting_for: Callable[[Endpoint, str], Setting],
    tools: Sequence[Tool],
    messages: Sequence[Message],
    emit: Callable[[Event], None],
    try_protocol: Callable[[Setting], Awaitable[tuple[str, str]]],
) -> Engine:
    """Comes to a server, started if need be, and finds out how its model calls tools.

    Raises ServerError, ModelFileError or UsageError.
    """
    # Loaded on the event loop at the first request, it would stop the front for as long as that takes.
    loading = asyncio.ensure_future(in_background(load))
    try:
        endpoint = await serving.endpoint(emit)
    finally:
        await asyncio.gather(loading, return_exceptions=True)
    require_window(endpoint)
    wanted = await serving.tool_protocol(endpoint)
    name, surprise = await try_protocol(setting_for(endpoint, wanted))
    if surprise:
        emit(Notice(text=surprise, level="warning"))
    protocol = protocol_named(name, tools)
    rescuer = Rescuer(serving, endpoint, emit=emit)
    setting = replace(setting_for(endpoint, name), recover=rescuer)
    model = model_for(setting, protocol, replies_before=last_reply_number(messages))
    window = endpoint.context_tokens
    emit(ServerState(state="ready", detail=f"context {window} tokens" if window else "context not known"))
    engine = Engine(
        serving=serving,
        endpoint=endpoint,
        protocol=protocol,
        model=model,
        rescuer=rescuer,
        speed=await in_background(lambda: guard_for(serving, endpoint)),
    )
    rescuer.arrived = engine.moved
    return engine


def why_gone(serving: Serving, endpoint: Endpoint, detail: str) -> str:
    """The end of a server of ours in the words of its own log, else `detail`."""
    cause: AgentError | None = serving.why_it_ended(endpoint)
    return cause.message if cause else detail


def _with_calls_in_text(message: Message) -> Message:
    """A reply whose calls are part of its text, as constrained replies have them."""
    if not isinstance(message, AssistantMessage) or all(call.in_text for call in message.tool_calls):
        return message
    import json

    lines = [
        json.dumps({"tool": call.name, **call.arguments}, ensure_ascii=False) for call in message.tool_calls
    ]
    calls: tuple[ToolCall, ...] = tuple(replace(call, in_text=True) for call in message.tool_calls)
    text = "\n".join(filter(None, [message.text.strip(), *lines]))
    return replace(message, text=text, tool_calls=calls)
