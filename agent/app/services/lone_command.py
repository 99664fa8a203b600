"""A shell command that is no call of the model's: a person types it, or a skill of theirs names it."""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from agent.core.cancel import closing
from agent.core.events import OWN_CALL, Event, ToolFinished, ToolOutcome
from agent.core.executor import Gate, ToolExecutor
from agent.core.messages import ToolCall, ToolMessage, UserMessage
from agent.core.tool import Tool, ToolContext

MOST_CHARACTERS = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneCommand:
    """How a command ended; `text` is its output with the exit code. `call_id` is that of its events."""

    call_id: str
    outcome: ToolOutcome = "cancelled"
    text: str = ""

    @property
    def printed(self) -> str | None:
        """None where it was not run to its end: nobody allowed it, or it was interrupted."""
        return self.text if self.outcome in ("ok", "error") else None


async def run_alone(
    shell: Tool,
    command: str,
    *,
    gate: Gate,
    context: ToolContext,
    emit: Callable[[Event], None],
    stop: asyncio.Event,
) -> LoneCommand:
    """Runs a command with the events of a tool call; their ids begin with `user-`. `stop` ends it."""
    executor = ToolExecutor((shell,), gate=gate, context=context, result_limit=lambda: MOST_CHARACTERS)
    call_id = f"{OWN_CALL}{uuid.uuid4().hex[:12]}"
    run = LoneCommand(call_id=call_id)
    call = ToolCall(call_id, shell.name, {"command": command}, "")
    async with closing(executor.execute(call, stop)) as items:
        async for item in items:
            if isinstance(item, ToolMessage | UserMessage):
                continue
            emit(item)
            if isinstance(item, ToolFinished):
                run = LoneCommand(call_id=call_id, outcome=item.outcome, text=item.text)
    return run
