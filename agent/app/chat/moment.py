"""Where the running step stands: how full the context is by now, and what the model is still waited for."""

from dataclasses import dataclass

from agent.core.events import (
    ASIDE_TOOL,
    CompactionFinished,
    CompactionStarted,
    Event,
    Prefill,
    ReasoningDelta,
    Rewound,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    TurnFinished,
)

_BEGINNING = StepStarted | CompactionStarted
_END = StepFinished | CompactionFinished | Rewound


@dataclass(slots=True)
class Moment:
    """Follows the events of a session.

    `tokens` are those that the server has read and written in the running step, 0 where it has not said so
    yet, and stay after a step that was interrupted; `pieces` those of its reply so far. `is_silent` between a
    request and the first sign of the model. `waits_for` says in a few words what the request waits for, empty
    where that is not known.
    """

    tokens: int = 0
    pieces: int = 0
    is_silent: bool = False
    waits_for: str = ""

    def observe(self, event: Event) -> None:
        if isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta):
            self.pieces += 1
            self._hear(self.tokens + 1 if self.tokens else 0)  # a server sends one piece for each token
        elif isinstance(event, Prefill):
            self._hear(event.processed)
        elif isinstance(event, _BEGINNING | _END):
            self._hear(0)
            self.pieces = 0
            self.is_silent = isinstance(event, StepStarted)
        elif isinstance(event, TurnFinished):
            self._hear(self.tokens)
            self.pieces = 0
        elif isinstance(event, ToolFinished) and event.tool == ASIDE_TOOL:
            self._hear(0)  # what was read for it is no part of the conversation

    def _hear(self, tokens: int) -> None:
        self.tokens = tokens
        self.is_silent = False
        self.waits_for = ""
