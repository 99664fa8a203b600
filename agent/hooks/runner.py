"""The hooks of one session: which run when, and what comes of their answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.confinement import Confinement, Unconfined
from agent.core.outside_text import one_line
from agent.hooks.spec import HookEvent, HookSpec

if TYPE_CHECKING:
    from agent.hooks.process import HookAnswer

MOST_RESULT_CHARACTERS = 16_000
TIMEOUTS_ALLOWED = 3
_NO_FEEDBACK = "a hook blocked this and gave no reason"


@dataclass(frozen=True, slots=True)
class Objection:
    """A hook that blocked, and what it says to the model."""

    command: str
    feedback: str


@dataclass(slots=True, kw_only=True)
class HookRunner:
    """Runs hooks one after another, in their order in the settings.

    A hook that fails or hangs blocks nothing: `notify` takes a line about it, and after three time-outs it
    is left out for the rest of the session.
    """

    specs: Sequence[HookSpec]
    workspace: Path
    session_id: str
    environment: Callable[[], Mapping[str, str]]
    notify: Callable[[str], None]
    confinement: Confinement = field(default_factory=Unconfined)
    _timeouts: dict[HookSpec, int] = field(default_factory=dict)

    def has(self, event: HookEvent) -> bool:
        return any(spec.event == event for spec in self.specs)

    async def session_start(self) -> str:
        """What the hooks have to say to the model at the beginning; a session cannot be blocked."""
        said: list[str] = []
        for spec in self._due("session_start"):
            answer = await self._run(spec, {})
            if answer.blocked:
                self.notify(f"{_named(spec)} cannot block the start of a session")
            if answer.feedback:
                said.append(answer.feedback)
        return "\n".join(said)

    async def before_tool(
        self, tool: str, arguments: Mapping[str, Any], called_as: str = ""
    ) -> Objection | None:
        """The first objection to a call, if there is one. The permission rules still have to agree.

        Hooks about `called_as`, the tool by which the model calls this one, are asked too.
        """
        for spec in self._due("before_tool", tool, called_as):
            answer = await self._run(spec, {"tool": tool, "arguments": dict(arguments)})
            if answer.blocked:
                return Objection(spec.command, answer.feedback or _NO_FEEDBACK)
        return None

    async def after_tool(
        self, tool: str, arguments: Mapping[str, Any], *, outcome: str, result: str, called_as: str = ""
    ) -> tuple[str, bool]:
        """Feedback on what a tool did, for the model, and whether one of the hooks objects to it."""
        said: list[str] = []
        objected = False
        for spec in self._due("after_tool", tool, called_as):
            about = {"tool": tool, "arguments": dict(arguments), "outcome": outcome}
            answer = await self._run(spec, {**about, "result": result[:MOST_RESULT_CHARACTERS]})
            objected = objected or answer.blocked
            if answer.feedback or answer.blocked:
                said.append(answer.feedback or _NO_FEEDBACK)
        return "\n".join(said), objected

    async def before_finish(self) -> Objection | None:
        """The first objection to calling the work done, if there is one."""
        for spec in self._due("before_finish"):
            answer = await self._run(spec, {})
            if answer.blocked:
                return Objection(spec.command, answer.feedback or _NO_FEEDBACK)
        return None

    def _due(self, event: HookEvent, *tools: str) -> Iterator[HookSpec]:
        for spec in self.specs:
            if spec.event != event or self._timeouts.get(spec, 0) >= TIMEOUTS_ALLOWED:
                continue
            if not tools or any(spec.is_about(tool) for tool in tools):
                yield spec

    async def _run(self, spec: HookSpec, about: Mapping[str, Any]) -> "HookAnswer":
        from agent.hooks.process import run_hook

        payload = {
            "event": spec.event,
            "session_id": self.session_id,
            "workspace": str(self.workspace),
            **about,
        }
        answer = await run_hook(spec, payload, self.workspace, self.environment(), self.confinement)
        if answer.timed_out:
            self._timeouts[spec] = self._timeouts.get(spec, 0) + 1
        if answer.problem:
            left_out = self._timeouts.get(spec, 0) >= TIMEOUTS_ALLOWED
            end = "; it is left out from now on" if left_out else ""
            self.notify(f"{_named(spec)} {answer.problem}{end}")
        return answer


def _named(spec: HookSpec) -> str:
    return f"the {spec.event} hook `{one_line(spec.command, 80)}`"
