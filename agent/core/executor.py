"""Runs one tool call: validate, ask the gate, run, cap the result. Never raises for a model's mistake."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from agent.core.events import ToolFinished, ToolOutcome, ToolOutput, ToolStarted
from agent.core.messages import ToolCall, ToolMessage
from agent.core.tool import Tool, ToolContext, ToolResult

ExecutorItem = ToolStarted | ToolOutput | ToolFinished | ToolMessage


@dataclass(frozen=True, slots=True)
class GateDecision:
    """`reason` is shown to people and, for a denial, to the model."""

    allowed: bool
    reason: str


class Gate(Protocol):
    """Decides whether a call may run. May wait for a person."""

    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision: ...


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

    async def execute(self, call: ToolCall, cancel: asyncio.Event) -> AsyncIterator[ExecutorItem]:
        """Yields exactly one `ToolStarted` and one `ToolFinished`, then the message for the model."""
        yield ToolStarted(call_id=call.id, tool=call.name, arguments=call.arguments)
        started = self._clock()
        decision = ""
        tool = self._tools.get(call.name)
        params = self._validate(tool, call)
        if tool is None or isinstance(params, str):
            outcome, result = "error", ToolResult(str(params), is_error=True)
        else:
            verdict = await self._gate.decide(tool, call.arguments)
            decision = verdict.reason
            if not verdict.allowed:
                outcome, result = "denied", ToolResult(f"Denied: {verdict.reason}", is_error=True)
            else:
                running = self._run(tool, params, call.id, cancel)
                outcome, result = "cancelled", ToolResult("Cancelled.", is_error=True)
                async for item in running:
                    if isinstance(item, ToolOutput):
                        yield item
                    else:
                        outcome, result = item
        text = self._capped(result.model_text)
        yield ToolFinished(
            call_id=call.id,
            tool=call.name,
            outcome=outcome,
            text=text,
            seconds=round(self._clock() - started, 4),
            decision=decision,
            diffs=result.diffs,
        )
        yield ToolMessage(call_id=call.id, tool_name=call.name, text=text, is_error=result.is_error)

    def _validate(self, tool: Tool | None, call: ToolCall) -> BaseModel | str:
        if tool is None:
            return f"There is no tool {call.name!r}. The tools are: {', '.join(self._tools)}."
        try:
            return tool.params.model_validate(dict(call.arguments))
        except ValidationError as error:
            return f"Wrong arguments for {call.name}: {_explain(error)}"

    async def _run(
        self, tool: Tool, params: BaseModel, call_id: str, cancel: asyncio.Event
    ) -> AsyncIterator[ToolOutput | tuple[ToolOutcome, ToolResult]]:
        output: asyncio.Queue[str] = asyncio.Queue()
        context = replace(self._context, emit=output.put_nowait)
        work = asyncio.ensure_future(tool.run(params, context))
        stop = asyncio.ensure_future(cancel.wait())
        try:
            while not work.done() and not stop.done():
                listen = asyncio.ensure_future(output.get())
                await asyncio.wait({work, stop, listen}, return_when=asyncio.FIRST_COMPLETED)
                if listen.done():
                    yield ToolOutput(call_id=call_id, text=listen.result())
                else:
                    listen.cancel()
            while not output.empty():
                yield ToolOutput(call_id=call_id, text=output.get_nowait())
            if not work.done():
                yield "cancelled", ToolResult("Cancelled by the user.", is_error=True)
                return
            yield _outcome(work)
        finally:
            stop.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})

    def _capped(self, text: str) -> str:
        limit = max(200, self._result_limit())
        if len(text) <= limit:
            return text
        head, tail = text[: limit * 2 // 3], text[-(limit // 3) :]
        return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"


def _outcome(work: "asyncio.Future[ToolResult]") -> tuple[ToolOutcome, ToolResult]:
    if work.cancelled():
        return "cancelled", ToolResult("Cancelled.", is_error=True)
    error = work.exception()
    if error is None:
        result = work.result()
        return ("error" if result.is_error else "ok"), result
    if isinstance(error, OSError):
        return "error", ToolResult(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), True)
    raise error


def _explain(error: ValidationError) -> str:
    problems = []
    for item in error.errors(include_url=False, include_context=False):
        place = ".".join(str(part) for part in item["loc"])
        problems.append(f"{place}: {item['msg'].lower()}" if place else item["msg"])
    return "; ".join(problems)
