"""A person's own command in a session: nobody has to allow it, and the model is told about it if wanted."""

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent.app.live import LiveSession
from agent.core.cancel import closing
from agent.core.confinement import Unconfined
from agent.core.events import OWN_CALL, ToolFinished, ToolOutcome, UserMessageAdded
from agent.core.executor import GateDecision, ToolExecutor
from agent.core.messages import ToolCall, ToolMessage, UserMessage
from agent.core.outside_text import fenced
from agent.core.tool import Tool

_MOST_CHARACTERS = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRun:
    """How a command ended; `text` is its output with the exit code. `call_id` is that of its events."""

    call_id: str
    outcome: ToolOutcome
    text: str
    in_context: bool


class _OwnerGate:
    """Whoever owns the machine needs no permission."""

    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision:
        return GateDecision(True, "typed by the user")


async def run_for_person(live: LiveSession, command: str, *, in_context: bool) -> ShellRun:
    """Runs a command with the events of a tool call; ids begin with `user-`. `cancel` of the session ends it.

    Its output reaches the model with the next request if `in_context`.
    """
    executor = ToolExecutor(
        (live.shell,),
        gate=_OwnerGate(),
        context=replace(live.gate.context, environment=live.environment(), confinement=Unconfined()),
        result_limit=lambda: _MOST_CHARACTERS,
    )
    call_id = f"{OWN_CALL}{uuid.uuid4().hex[:12]}"
    call = ToolCall(call_id, live.shell.name, {"command": command}, "")
    stop = asyncio.Event()
    live.commands.add(stop)
    run = ShellRun(call_id=call_id, outcome="cancelled", text="", in_context=in_context)
    try:
        async with closing(executor.execute(call, stop)) as items:
            async for item in items:
                if isinstance(item, ToolMessage | UserMessage):
                    continue
                live.emit(item)
                if isinstance(item, ToolFinished):
                    run = replace(run, outcome=item.outcome, text=item.text)
    finally:
        live.commands.discard(stop)
    live.glance.refresh()
    if in_context:
        _tell(live, f"I ran `{command}` myself:\n{fenced(run.text)}")
    return run


def _tell(live: LiveSession, text: str) -> None:
    """Into the conversation now, or with the next request where one is under way or none was made yet."""
    conversation = live.record.conversation
    if live.is_running or not conversation.messages:
        live.inbox.note(text)
        return
    conversation.add(UserMessage(text))
    live.emit(UserMessageAdded(text=text, is_note=True))
