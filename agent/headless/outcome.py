"""What a run came to, and the exit code that says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.core.errors import ExitCode
from agent.core.events import CheckFinished, Event, ToolFinished, TurnFinished, TurnReason

_EXIT_CODES: Mapping[TurnReason, ExitCode] = {
    "done": ExitCode.DONE,
    "check_failed": ExitCode.NOT_SOLVED,
    "gave_up": ExitCode.NOT_SOLVED,
    "attempt_limit": ExitCode.LIMIT,
    "step_limit": ExitCode.LIMIT,
    "tool_call_limit": ExitCode.LIMIT,
    "time_limit": ExitCode.LIMIT,
    "token_limit": ExitCode.LIMIT,
    "context_full": ExitCode.LIMIT,
    "server_failed": ExitCode.SERVER,
    "cancelled": ExitCode.INTERRUPTED,
}


@dataclass(slots=True)
class RunOutcome:
    """Collects from the events of a run what its end is judged by."""

    finished: TurnFinished | None = None
    check: CheckFinished | None = None
    denied: list[str] = field(default_factory=list)

    def observe(self, event: Event) -> None:
        if isinstance(event, TurnFinished):
            self.finished = event
        elif isinstance(event, CheckFinished):
            self.check = event
        elif isinstance(event, ToolFinished):
            self.denied += [event.decision] if event.outcome == "denied" else event.refused

    @property
    def exit_code(self) -> ExitCode:
        """A denied call makes a run that proves nothing by a check a 4: part of the work was refused."""
        if self.finished is None:
            return ExitCode.SERVER
        proven = self.check is not None and self.check.passed
        code = _EXIT_CODES[self.finished.reason]
        if self.denied and not proven and code in (ExitCode.DONE, ExitCode.NOT_SOLVED):
            return ExitCode.DENIED
        return code
