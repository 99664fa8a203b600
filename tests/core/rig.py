"""A workshop for tests of the turn loop: tools that do what they are told, a gate, a check."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agent.core.events import CheckFinished, Event, TurnFinished
from agent.core.executor import GateDecision, ToolExecutor
from agent.core.limits import Guard
from agent.core.loop import Conversation, run_turn
from agent.core.messages import ToolMessage
from agent.core.model import Model
from agent.core.tool import Access, FileDiff, FileVersion, Tool, ToolContext, ToolResult
from agent.core.turn import TurnServices
from agent.core.verifier import Verdict

Action = Callable[[Any, ToolContext], Any]


class Params(BaseModel):
    path: str = ""
    count: int = 1


class FakeTool:
    """Runs what it is given; a plain result is returned as it is."""

    params: type[BaseModel] = Params
    description = "Does something."

    def __init__(
        self, name: str, action: Action | ToolResult | str = "done", access: Access = "read"
    ) -> None:
        self.name = name
        self.access: Access = access
        self.calls: list[Params] = []
        self._action = action

    async def run(self, params: Any, context: ToolContext) -> ToolResult:
        self.calls.append(params)
        action = self._action
        result = await action(params, context) if callable(action) else action
        return ToolResult(result) if isinstance(result, str) else result


def editing(name: str = "edit") -> FakeTool:
    """A tool that changes the file it is given."""
    changed = ToolResult("edited", diffs=(FileDiff("a.py", "old", "new"),))
    return FakeTool(name, changed, access="write")


def waiting(started: asyncio.Event, name: str = "wait", on_cancel: str = "") -> FakeTool:
    """A tool that says when it has begun and never ends by itself."""

    async def wait_for_ever(_: Any, context: ToolContext) -> str:
        context.emit("begun")
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            if on_cancel:
                context.emit(on_cancel)
        return "never"

    return FakeTool(name, wait_for_ever)


class OpenGate:
    """Allows everything but the tools that are named, with the reason given for them."""

    def __init__(self, **denied: str) -> None:
        self._denied = denied

    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision:
        reason = self._denied.get(tool.name)
        return GateDecision(False, reason) if reason else GateDecision(True, "allowed by a rule")


class NoLedger:
    def seen(self, path: Path) -> FileVersion | None:
        return None

    def record(self, path: Path) -> None:
        return

    def is_stale(self, path: Path) -> bool:
        return False

    def before_change(self, path: Path) -> None:
        return


class FakeCheck:
    """A check whose verdicts are listed in the order in which they are asked for, the last one for ever."""

    def __init__(self, *passes: bool) -> None:
        self._passes = list(passes)
        self.asked: list[str] = []

    async def after_change(self) -> Verdict:
        return self._verdict("change")

    async def at_finish(self) -> Verdict:
        return self._verdict("finish")

    def _verdict(self, occasion: str) -> Verdict:
        self.asked.append(occasion)
        passed = self._passes[min(len(self.asked), len(self._passes)) - 1]
        words = "The check passes now." if passed else f"The check fails ({len(self.asked)})."
        event = CheckFinished(command="make test", passed=passed, text=words, seconds=0.1)
        return Verdict(passed, words, event)


def tool_context() -> ToolContext:
    return ToolContext(
        workspace=Path("/nowhere"), ledger=NoLedger(), spill_folder=Path("/nowhere"), emit=lambda _: None
    )


def executor_of(*tools: Tool, gate: Any = None, limit: int = 10_000, **options: Any) -> ToolExecutor:
    return ToolExecutor(
        tools, gate=gate or OpenGate(), context=tool_context(), result_limit=lambda: limit, **options
    )


def services_of(
    model: Model, *tools: Tool, guards: Sequence[Guard] = (), gate: Any = None, **more: Any
) -> TurnServices:
    return TurnServices(model=model, executor=executor_of(*tools, gate=gate), guards=guards, **more)


async def turn(
    services: TurnServices, prompt: str = "Do it.", conversation: Conversation | None = None
) -> list[Event]:
    """All events of one turn."""
    return [event async for event in run_turn(conversation or Conversation(), prompt, services)]


async def collect(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


def types(events: Sequence[Event]) -> list[str]:
    return [event.type for event in events]


def of_type(events: Sequence[Any], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def answered(events: list[Any]) -> TurnFinished:
    """The end of the turn, which has to be the last event and the only one of its kind."""
    [end] = of_type(events, TurnFinished)
    assert events[-1] is end
    return end


def notes_in(conversation: Conversation) -> list[str]:
    """What was said with each result."""
    return [message.note for message in conversation.messages if isinstance(message, ToolMessage)]


def results_in(messages: list[Any]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage)]
