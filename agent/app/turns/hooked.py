"""Where hooks meet a turn: in front of the permission gate, behind each tool, and before the end."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.app.files.authorship import Authorship
from agent.app.turns.around import ToolAround
from agent.core.events import CheckFinished
from agent.core.executor import Gate, GateDecision
from agent.core.outside_text import fenced
from agent.core.tool import Tool, ToolContext, ToolResult
from agent.core.verifier import Verdict, Verifier
from agent.hooks.runner import HookRunner


@dataclass(frozen=True, slots=True)
class HookedGate:
    """Asks the hooks first: no person is asked about a call that is blocked. The gate still decides."""

    gate: Gate
    hooks: HookRunner

    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision:
        called_as = getattr(tool, "called_as", "")
        objection = await self.hooks.before_tool(tool.name, arguments, called_as)
        if objection is not None:
            return GateDecision(False, f"blocked by a hook: {objection.feedback}")
        return await self.gate.decide(tool, arguments)


class HookedTool(ToolAround):
    """A tool whose result the hooks have seen. What a hook does to files is the run's own doing."""

    def __init__(self, tool: Tool, hooks: HookRunner, authorship: Authorship) -> None:
        super().__init__(tool)
        self._hooks = hooks
        self._authorship = authorship

    async def run(self, params: Any, context: ToolContext) -> ToolResult:
        result = await self._tool.run(params, context)
        name, arguments = self._meant(params)
        paths = [context.workspace / diff.path for diff in result.diffs if diff.after is not None]
        before = {path: _version(path) for path in paths}
        with self._authorship.of_a_command():
            feedback, objected = await self._hooks.after_tool(
                name,
                arguments,
                outcome="error" if result.is_error else "ok",
                result=result.model_text,
                called_as=self.name,
            )
        notes = [result.model_text]
        for path in paths:
            if before[path] is not None and _version(path) not in (None, before[path]):
                # The model may go on editing: a text that is no longer there is refused anyway.
                context.ledger.record(path)
                notes.append(f"A hook has changed {path.relative_to(context.workspace)} after that.")
        if feedback:
            notes.append(f"A hook says: {feedback}")
        if len(notes) == 1:
            return result
        return replace(result, model_text="\n".join(notes), is_error=result.is_error or objected)

    def _meant(self, params: Any) -> tuple[str, Mapping[str, Any]]:
        meant = self.acts_as(params)
        if isinstance(meant, tuple):
            return meant[0].name, meant[1]
        return self.name, params.model_dump(mode="json", exclude_none=True)


class HookedFinish:
    """A verifier that lets the hooks object to an end that the check, if there is one, agrees to."""

    def __init__(
        self,
        verifier: Verifier | None,
        hooks: HookRunner,
        authorship: Authorship,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._verifier = verifier
        self._hooks = hooks
        self._authorship = authorship
        self._clock = clock
        self._objector = ""

    async def after_change(self) -> Verdict | None:
        return await self._verifier.after_change() if self._verifier is not None else None

    async def at_finish(self) -> Verdict | None:
        verdict = await self._verifier.at_finish() if self._verifier is not None else None
        if verdict is not None and not verdict.passed:
            return verdict
        began = self._clock()
        with self._authorship.of_a_command():
            objection = await self._hooks.before_finish()
        seconds = round(self._clock() - began, 4)
        if objection is not None:
            self._objector = objection.command
            text = f"Not done yet: a hook objects.\n{fenced(objection.feedback)}"
            event = CheckFinished(
                command=objection.command, passed=False, text=objection.feedback, seconds=seconds
            )
            return Verdict(False, text, event)
        if verdict is None and self._objector:
            # What was written down as failed has to be seen to pass.
            event = CheckFinished(command=self._objector, passed=True, text="", seconds=seconds)
            return Verdict(True, "", event)
        return verdict


def _version(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
