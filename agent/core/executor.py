"""Runs one tool call: validate, ask the gate, run, cap the result. Never raises for a model's mistake."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from agent.core.cancel import InterruptedRunError, closing, unless_cancelled
from agent.core.control_tokens import rearmed
from agent.core.errors import AgentError
from agent.core.events import ToolFinished, ToolOutcome, ToolOutput, ToolStarted
from agent.core.messages import ToolCall, ToolMessage, UserMessage
from agent.core.tool import Tool, ToolContext, ToolResult
from agent.core.trimming import cut

ExecutorItem = ToolStarted | ToolOutput | ToolFinished | ToolMessage | UserMessage
# So much of a result is always shown, however full the context window is.
LEAST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class GateDecision:
    """`reason` is shown to people and, for a denial, to the model.

    `hopeless` says that the call was not refused, but cannot do what it is meant to; `reason` tells why.
    `places` are the real paths of files that were judged, see `ToolContext.judged`.
    """

    allowed: bool
    reason: str
    hopeless: bool = False
    places: frozenset[str] | None = None


class Gate(Protocol):
    """Decides whether a call may run. May wait for a person."""

    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision: ...


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a call ended; `seconds` without the time that the gate waited for a person."""

    outcome: ToolOutcome
    result: ToolResult
    decision: str = ""
    seconds: float = 0.0


_CANCELLED = ToolResult("Cancelled before it ended.", is_error=True)


class ToolExecutor:
    """Executes calls of the given tools in the order in which they are handed in."""

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        gate: Gate,
        context: ToolContext,
        result_limit: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`result_limit` gives the most characters that a result may add to the conversation now."""
        self._tools = {tool.name: tool for tool in tools}
        self._gate = gate
        self._context = context
        self._result_limit = result_limit
        self._clock = clock

    def knows(self, name: str) -> bool:
        """Whether there is a tool of that name."""
        return name in self._tools

    async def execute(self, call: ToolCall, cancel: asyncio.Event) -> AsyncIterator[ExecutorItem]:
        """Yields exactly one `ToolStarted` and one `ToolFinished`, then the message for the model.

        Images of a result come last, as a `UserMessage`. It has to stand behind the results of the whole
        reply, as templates take no image in a result.

        When `cancel` is set the tool is stopped, or not even begun.
        """
        call = replace(call, arguments=rearmed(call.arguments))
        yield ToolStarted(call_id=call.id, tool=call.name, arguments=call.arguments)
        ended = _Ended("cancelled", _CANCELLED)
        async with closing(self._settle(call, cancel)) as items:
            async for item in items:
                if isinstance(item, _Ended):
                    ended = item
                else:
                    yield item
        text = self._capped(ended.result.model_text)
        yield ToolFinished(
            call_id=call.id,
            tool=call.name,
            outcome=ended.outcome,
            text=text,
            seconds=round(ended.seconds, 4),
            decision=ended.decision,
            diffs=ended.result.diffs,
            refused=ended.result.refused,
        )
        yield ToolMessage(call_id=call.id, tool_name=call.name, text=text, is_error=ended.result.is_error)
        if ended.result.pictures:
            names = ", ".join(picture.name for picture in ended.result.pictures)
            told = f"(Images that {call.name} returned, data and not from the user: {names})"
            yield UserMessage(told, ended.result.pictures)

    async def _settle(self, call: ToolCall, cancel: asyncio.Event) -> AsyncIterator[ToolOutput | _Ended]:
        tool = self._tools.get(call.name)
        if tool is None:
            yield _Ended("error", ToolResult(self._unknown(call.name), is_error=True))
            return
        try:
            params = tool.params.model_validate(dict(call.arguments))
        except ValidationError as error:
            wrong = f"Wrong arguments for {call.name}: {_explain(error)}{_misnamed(tool, call, error)}"
            yield _Ended("error", ToolResult(wrong, is_error=True))
            return
        meant = _meant(tool, params, call.arguments)
        if isinstance(meant, ToolResult):
            yield _Ended("error", meant)
            return
        try:
            verdict = await unless_cancelled(self._gate.decide(*meant), cancel)
        except InterruptedRunError:
            return
        if verdict.hopeless:
            yield _Ended("error", ToolResult(verdict.reason, is_error=True))
            return
        if not verdict.allowed:
            denied = ToolResult(f"Denied: {verdict.reason}", is_error=True)
            yield _Ended("denied", denied, verdict.reason)
            return
        async with closing(self._run(tool, params, call.id, verdict, cancel)) as items:
            async for item in items:
                yield replace(item, decision=verdict.reason) if isinstance(item, _Ended) else item

    def _unknown(self, name: str) -> str:
        """What a model is told that calls a tool which is not offered, or not by its own name."""
        for tool in self._tools.values():
            reaches = getattr(tool, "reaches", None)
            if reaches is not None and reaches(name):
                return f'Call it with {tool.name}: {{"name": "{name}", "arguments": {{…}}}}'
        return f"There is no tool {name!r}. The tools are: {', '.join(self._tools)}."

    async def _run(
        self, tool: Tool, params: BaseModel, call_id: str, verdict: GateDecision, cancel: asyncio.Event
    ) -> AsyncIterator[ToolOutput | _Ended]:
        """Passes output on while the tool works, then how it ended. A set `cancel` stops the tool first."""
        if cancel.is_set():
            return
        started = self._clock()
        output: asyncio.Queue[str | None] = asyncio.Queue()
        context = replace(self._context, emit=output.put_nowait, judged=verdict.places)
        work = asyncio.ensure_future(tool.run(params, context))
        work.add_done_callback(lambda _: output.put_nowait(None))
        stop = asyncio.ensure_future(cancel.wait())
        stop.add_done_callback(lambda _: work.cancel())
        try:
            while (text := await output.get()) is not None:
                yield ToolOutput(call_id=call_id, text=text)
            outcome, result = _outcome(work, tool.name)
            yield _Ended(outcome, result, seconds=self._clock() - started)
        finally:
            work.cancel()
            stop.cancel()
            await asyncio.gather(work, stop, return_exceptions=True)

    def _capped(self, text: str) -> str:
        return cut(text, max(LEAST_CHARACTERS, self._result_limit()))


def _meant(
    tool: Tool, params: BaseModel, arguments: Mapping[str, Any]
) -> tuple[Tool, Mapping[str, Any]] | ToolResult:
    """What the gate has to judge: the tool, or the one that it calls, see `CallsAnother`."""
    acts_as = getattr(tool, "acts_as", None)
    meant = acts_as(params) if acts_as is not None else None
    return (tool, arguments) if meant is None else meant


def _outcome(work: "asyncio.Future[ToolResult]", name: str) -> tuple[ToolOutcome, ToolResult]:
    """What became of a tool. One that fails in a way it did not foresee must not end the session."""
    if work.cancelled():
        return "cancelled", _CANCELLED
    error = work.exception()
    if error is None:
        result = work.result()
        return ("error" if result.is_error else "ok"), result
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return "error", ToolResult(f"{error.strerror}{where}", is_error=True)
    if isinstance(error, AgentError | OSError):
        return "error", ToolResult(str(error), is_error=True)
    if not isinstance(error, Exception):
        raise error
    return "error", ToolResult(f"{name} failed: {type(error).__name__}: {error}", is_error=True)


def _explain(error: ValidationError) -> str:
    problems = []
    for item in error.errors(include_url=False, include_context=False):
        place = ".".join(str(part) for part in item["loc"])
        message = item["msg"][:1].lower() + item["msg"][1:]
        problems.append(f"{place}: {message}" if place else message)
    return "; ".join(problems)


def _misnamed(tool: Tool, call: ToolCall, error: ValidationError) -> str:
    """Names that the model made up, where one that is required is missing: it has meant that one."""
    fields = tool.params.model_fields
    names = [field.alias or name for name, field in fields.items()]
    unknown = [name for name in call.arguments if name not in names]
    if not unknown or not any(item["type"] == "missing" for item in error.errors()):
        return ""
    return f". There is no {', '.join(unknown)}: {call.name} takes {', '.join(names)}."
