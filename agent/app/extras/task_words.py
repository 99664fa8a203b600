"""The words of a task that begins like a slash command, and what the command or skill brought with them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.app.extras.extensions import Extensions
from agent.app.extras.slash import spelled_out
from agent.app.mcp.servers import McpServers
from agent.app.services.lone_command import run_alone
from agent.app.turns.workbench import RuleGate
from agent.core.events import Event
from agent.core.tool import Tool, ToolContext
from agent.permissions.rules import Rule


@dataclass(frozen=True, slots=True)
class TaskWords:
    """`rules` are those that a skill is allowed. `has_printed`: output of its commands is in `text`."""

    text: str
    rules: Sequence[Rule] = ()
    has_printed: bool = False


@dataclass(slots=True, kw_only=True)
class TaskWording:
    """Spells a task out, under the rules of its run. `cancel` ends the commands that it takes."""

    extensions: Extensions
    mcp: McpServers
    shell: Tool
    gate: RuleGate
    context: ToolContext
    cancel: asyncio.Event
    emit: Callable[[Event], None]
    _has_printed: bool = False

    async def of(self, text: str) -> TaskWords:
        """Raises AgentError, see `spelled_out`."""
        rules: list[Rule] = []

        def grant(given: tuple[Rule, ...]) -> None:
            rules.extend(given)
            self.gate.grant(given)

        shelf = self.extensions.shelf
        usual, shelf.grant = shelf.grant, grant
        try:
            words = await spelled_out(text, self.extensions, self.mcp, self._output_of)
        finally:
            shelf.grant = usual
        return TaskWords(words, rules, self._has_printed)

    async def _output_of(self, command: str) -> str | None:
        """What the command printed; None where the rules do not allow it. See `Printing`."""
        ran = await run_alone(
            self.shell, command, gate=self.gate, context=self.context, emit=self.emit, stop=self.cancel
        )
        self._has_printed |= ran.outcome == "ok"
        return ran.printed
