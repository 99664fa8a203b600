"""What a run waits for while no event says anything: a slow machine reads a prompt for minutes."""

from collections.abc import Callable

from agent.core.events import (
    CheckFinished,
    CompactionFinished,
    CompactionStarted,
    Event,
    Prefill,
    ReasoningDelta,
    Retry,
    ServerState,
    SessionStarted,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)

_FOR_THE_MODEL = "waiting for the model"
_READING = "reading the prompt"
_ANSWERING = "answering"
TERMINAL_SECONDS = 2.0
"""A run that is quicker than this between two events shows nothing of its waiting."""

LOG_SECONDS = 30.0
"""At most one line in so many seconds where lines cannot be taken back, and only if nothing else is said."""


class Waiting:
    """Follows the events of a run. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kind = ""
        self._detail = ""
        self._since = clock()
        self._pieces = 0

    def observe(self, event: Event) -> None:
        match event:
            case StepStarted() | CompactionStarted() | Retry():
                self._begin(_FOR_THE_MODEL)
            case Prefill():
                self._begin(_READING, f": {event.processed} of {event.total} tokens")
            case TextDelta() | ToolCallDelta() | ReasoningDelta():
                self._answer()
            case ToolStarted():
                self._begin(f"{event.tool} is at work")
            case ServerState() if event.state != "warning":
                self._begin("" if event.state == "ready" else f"server: {event.detail or event.state}")
            case (
                SessionStarted()
                | ToolFinished()
                | StepFinished()
                | TurnFinished()
                | CheckFinished()
                | CompactionFinished()
            ):
                self._begin("")
            case _:
                return

    def _answer(self) -> None:
        """A piece of a reply is about a token."""
        self._pieces = self._pieces + 1 if self._kind == _ANSWERING else 1
        self._begin(_ANSWERING, f": about {self._pieces} tokens" if self._pieces > 1 else "")

    def _begin(self, kind: str, detail: str = "") -> None:
        if kind != self._kind:
            self._since = self._clock()
        self._kind, self._detail = kind, detail

    @property
    def is_unanswered(self) -> bool:
        """Whether a request was sent and the server has said nothing yet."""
        return self._kind == _FOR_THE_MODEL and self._clock() - self._since >= TERMINAL_SECONDS

    def line(self, busy: str) -> str:
        """What goes on and for how many seconds; empty where nothing is waited for.

        `busy` says why the server does not begin, if that is known.
        """
        if not self._kind:
            return ""
        what = f"waiting: {busy}" if busy and self._kind == _FOR_THE_MODEL else f"{self._kind}{self._detail}"
        return f"{what} ({self._clock() - self._since:.0f} s)"
