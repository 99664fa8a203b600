"""What a front says after a step back or forward in files."""

from collections.abc import Sequence
from typing import Protocol

from agent.core.outside_text import one_line, shown_name

_LONGEST_TASK = 60
_MOST_NAMES = 8


class StepTaken(Protocol):
    """What undo or redo did. `turn` is 0 for a run that counts no turns, `task` what was asked for in it."""

    @property
    def turn(self) -> int: ...
    @property
    def task(self) -> str: ...
    @property
    def restored(self) -> Sequence[str]: ...
    @property
    def deleted(self) -> Sequence[str]: ...
    @property
    def goes_further(self) -> bool: ...


def taken_back(step: StepTaken) -> str:
    """What /undo took back, in a line, and what comes next."""
    what = _what(step)
    if not (step.restored or step.deleted):
        more = "; /undo goes further back" if step.goes_further else ""
        return f"Every file is already as before {what}{more}."
    more = ", /undo goes further back" if step.goes_further else ""
    return f"Took back {what}: {_files(step, 'put back')}. /redo brings it back{more}."


def brought_back(step: StepTaken) -> str:
    """The same for /redo."""
    more = ", /redo brings back the next" if step.goes_further else ""
    files = _files(step, "changed") or "no file had to change"
    return f"Brought back {_what(step)}: {files}. /undo takes it back{more}."


def _what(step: StepTaken) -> str:
    short = one_line(step.task, _LONGEST_TASK)
    called = f"turn {step.turn}" if step.turn else "the changes"
    return f"{called} ({short})" if short else called


def _files(step: StepTaken, written: str) -> str:
    """`written` is the word for files that have another content now."""
    found = ((written, step.restored), ("removed", step.deleted))
    return "; ".join(f"{word} {_names(names)}" for word, names in found if names)


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(shown_name, names[:_MOST_NAMES])) + more
