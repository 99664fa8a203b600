"""The seam to whatever can tell that the work is done, such as the check command of a task."""

from dataclasses import dataclass
from typing import Protocol

from agent.core.events import CheckFinished


@dataclass(frozen=True, slots=True)
class Verdict:
    """`feedback` is what the model is told, `cannot_start` why the command did not even begin, if so."""

    passed: bool
    feedback: str
    event: CheckFinished
    cannot_start: str = ""


class Verifier(Protocol):
    async def after_change(self) -> Verdict | None:
        """Called after a step that changed files."""
        ...

    async def at_finish(self) -> Verdict | None:
        """Called when the model says that it is done. `None` means that there is nothing to check."""
        ...
