"""A person's own command in a session: nobody has to allow it, and the model is told about it if wanted."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent.app.chat.live import LiveSession
from agent.app.services.lone_command import LoneCommand, run_alone
from agent.core.confinement import Unconfined
from agent.core.events import UserMessageAdded
from agent.core.executor import Gate, GateDecision
from agent.core.messages import UserMessage
from agent.core.outside_text import fenced
from agent.core.tool import Tool, ToolContext


class _OwnerGate:
    """Whoever owns the machine needs no permission."""

    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision:
        return GateDecision(True, "typed by the user")


async def run_for_person(live: LiveSession, command: str, *, in_context: bool) -> LoneCommand:
    """Runs a command that the person typed. `cancel` of the session ends it.

    Its output reaches the model with the next request if `in_context`.
    """
    context = replace(live.gate.context, environment=live.environment(), confinement=Unconfined())
    ran = await _run(live, live.shell, command, _OwnerGate(), context)
    live.glance.refresh()
    if in_context:
        _tell(live, f"I ran `{command}` myself:\n{fenced(ran.text)}")
    return ran


async def print_for_skill(live: LiveSession, command: str) -> str | None:
    """Runs a command that a skill or custom command of the person's names; what it printed, see `Printing`.

    The rules hold as for the model: nobody looks at each line of a skill before they use it.
    """
    shell = next(tool for tool in live.tools if tool.name == live.shell.name)
    return (await _run(live, shell, command, live.gate, live.gate.context)).printed


async def _run(live: LiveSession, shell: Tool, command: str, gate: Gate, context: ToolContext) -> LoneCommand:
    stop = asyncio.Event()
    live.commands.add(stop)
    try:
        return await run_alone(shell, command, gate=gate, context=context, emit=live.emit, stop=stop)
    finally:
        live.commands.discard(stop)


def _tell(live: LiveSession, text: str) -> None:
    """Into the conversation now, or with the next request where one is under way or none was made yet."""
    conversation = live.record.conversation
    if live.is_running or not conversation.messages:
        live.inbox.note(text)
        return
    conversation.add(UserMessage(text))
    live.emit(UserMessageAdded(text=text, is_note=True))
