"""Turns the events of a session into the figures of the status bar and of the table of turns.

Counts are tokens, times seconds, rates tok/s. Rates divide by the model's time, never by that of tools.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from agent.core.events import (
    ASIDE_TOOL,
    ApprovalRequest,
    ApprovalSettled,
    CompactionFinished,
    Event,
    Prefill,
    ReasoningDelta,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from agent.core.stats import StepStats, total

Clock = Callable[[], float]

LEAST_LIVE_SECONDS = 0.3
"""A live rate over less time than this would only jump."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One finished turn; `seconds` is what the person waited, tools included."""

    number: int
    reason: str
    steps: int
    seconds: float
    stats: StepStats


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the status bar shows of the running turn, or of the last one. `None` where nothing is known.

    `asks` says that the turn waits for the person's answer, `is_working` that a tool runs.
    """

    is_running: bool = False
    asks: bool = False
    is_working: bool = False
    decode_rate: float | None = None
    is_estimate: bool = False
    prefill_rate: float | None = None
    prefill_done: int = 0
    prefill_total: int = 0
    acceptance: float | None = None
    accepted_length: float | None = None
    cached: int = 0
    new: int = 0
    elapsed: float | None = None


@dataclass
class TurnMeter:
    """Follows one session. `clock` is monotonic seconds."""

    clock: Clock
    turns: list[Turn] = field(default_factory=list)
    _steps: list[StepStats] = field(default_factory=list)
    _turn_began: float | None = None
    _last_elapsed: float | None = None
    _prefill: Prefill | None = None
    _prefill_began: float | None = None
    _first_piece: float | None = None
    _pieces: int = 0
    _aside: str = ""
    _open: set[str] = field(default_factory=set)
    _at_work: set[str] = field(default_factory=set)

    @property
    def is_running(self) -> bool:
        return self._turn_began is not None

    def note(self, event: Event) -> None:
        if isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta):
            self._note_piece()
        elif isinstance(event, Prefill):
            self._prefill = event
            if self._prefill_began is None:
                self._prefill_began = self.clock()
        elif isinstance(event, StepStarted):
            self._begin_turn()
            self._begin_step()
        elif isinstance(event, StepFinished):
            self._steps.append(event.stats)
            self._begin_step()
        elif isinstance(event, CompactionFinished):
            self._begin_step()
        elif isinstance(event, ToolStarted | ToolOutput | ToolFinished):
            self._note_tool(event)
        elif isinstance(event, ApprovalRequest):
            self._open.add(event.request_id)
        elif isinstance(event, ApprovalSettled):
            self._open.discard(event.request_id)
        elif isinstance(event, TurnStarted):
            self._begin_turn()
        elif isinstance(event, TurnFinished):
            self._finish_turn(event)

    def note_past(self, event: TurnFinished) -> None:
        """Counts a turn of a resumed session; of its time only the model's is known."""
        seconds = event.stats.prompt_seconds + event.stats.decode_seconds
        self._add_turn(event, seconds, event.stats)

    def restart(self) -> None:
        """Another session begins."""
        self.turns.clear()
        self._steps = []
        self._turn_began = None
        self._last_elapsed = None
        self._forget_calls()
        self._begin_step()

    def figures(self, pieces: int = 0) -> Figures:
        """`pieces` are those of the running reply that the session counted: here they may come joined."""
        stats = total(self._steps)
        elapsed = self._last_elapsed if self._turn_began is None else self.clock() - self._turn_began
        live = self._live_rate(max(pieces, self._pieces))
        last = self._steps[-1] if self._steps else StepStats()
        prefill = self._prefill if self._first_piece is None else None
        return Figures(
            is_running=self.is_running,
            asks=bool(self._open),
            is_working=bool(self._at_work),
            decode_rate=live if live is not None else stats.decode_rate,
            is_estimate=live is not None,
            prefill_rate=self._live_prefill_rate() or stats.prefill_rate,
            prefill_done=prefill.processed if prefill else 0,
            prefill_total=prefill.total if prefill else 0,
            acceptance=stats.acceptance_rate,
            accepted_length=accepted_length(stats),
            cached=last.cached_tokens,
            new=last.prompt_tokens,
            elapsed=elapsed,
        )

    def _begin_turn(self) -> None:
        if self._turn_began is None:
            self._turn_began = self.clock()
            self._steps = []

    def _begin_step(self) -> None:
        self._prefill = None
        self._prefill_began = None
        self._first_piece = None
        self._pieces = 0

    def _forget_calls(self) -> None:
        self._open.clear()
        self._at_work.clear()

    def _note_piece(self) -> None:
        if self._first_piece is None:
            self._first_piece = self.clock()
        self._pieces += 1

    def _note_tool(self, event: ToolStarted | ToolOutput | ToolFinished) -> None:
        """A question beside the work is read and answered like a step, and is none."""
        if event.type == "tool_started" and event.tool != ASIDE_TOOL:
            self._at_work.add(event.call_id)
        elif event.type == "tool_finished":
            self._at_work.discard(event.call_id)
        if isinstance(event, ToolOutput):
            if event.call_id == self._aside:
                self._note_piece()
        elif event.tool == ASIDE_TOOL:
            self._aside = event.call_id if isinstance(event, ToolStarted) else ""
            self._begin_step()

    def _live_rate(self, pieces: int) -> float | None:
        """An estimate until the server's own times arrive: it sends one piece for each token."""
        if self._first_piece is None:
            return None
        seconds = self.clock() - self._first_piece
        return (pieces - 1) / seconds if seconds >= LEAST_LIVE_SECONDS and pieces > 1 else None

    def _live_prefill_rate(self) -> float | None:
        if self._prefill is None or self._prefill_began is None or self._first_piece is not None:
            return None
        seconds = self.clock() - self._prefill_began
        fresh = self._prefill.processed - self._prefill.cached
        return fresh / seconds if seconds >= LEAST_LIVE_SECONDS and fresh > 0 else None

    def _finish_turn(self, event: TurnFinished) -> None:
        began = self._turn_began
        seconds = self.clock() - began if began is not None else 0.0
        stats = event.stats if event.stats != StepStats() else total(self._steps)
        self._add_turn(event, seconds, stats)
        self._turn_began = None
        self._last_elapsed = seconds
        self._forget_calls()
        self._begin_step()

    def _add_turn(self, event: TurnFinished, seconds: float, stats: StepStats) -> None:
        number = len(self.turns) + 1
        self.turns.append(
            Turn(number=number, reason=event.reason, steps=event.steps, seconds=seconds, stats=stats)
        )


def accepted_length(stats: StepStats) -> float | None:
    """Mean tokens that one pass of the target model gave, its own one included; None without drafts."""
    return stats.tokens_per_pass


def turn_records(turns: Iterable[Turn]) -> list[dict[str, object]]:
    """The turns as plain rows, for the table and for files."""
    return [
        {
            "turn": turn.number,
            "ended": turn.reason,
            "steps": turn.steps,
            "seconds": round(turn.seconds, 2),
            "decode_tok_s": _rounded(turn.stats.decode_rate),
            "prefill_tok_s": _rounded(turn.stats.prefill_rate),
            "acceptance": _rounded(turn.stats.acceptance_rate, 4),
            "accepted_length": _rounded(accepted_length(turn.stats)),
            "cached_tokens": turn.stats.cached_tokens,
            "new_tokens": turn.stats.prompt_tokens,
            "decoded_tokens": turn.stats.decoded_tokens,
            "drafted_tokens": turn.stats.drafted,
            "accepted_tokens": turn.stats.accepted,
        }
        for turn in turns
    ]


def _rounded(value: float | None, digits: int = 2) -> float | None:
    return None if value is None else round(value, digits)
