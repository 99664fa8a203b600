"""What each turn of a session cost, for a screen of details and for estimates."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agent.core.events import (
    Event,
    SessionStarted,
    StepFinished,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    UserMessageAdded,
)
from agent.core.stats import StepStats, total

# The rate of a prompt of a few tokens says nothing about a long one.
_TELLING_TOKENS = 32


@dataclass(slots=True, kw_only=True)
class TurnRow:
    """One turn. `reason` is empty while it runs; `tool_seconds` is the time of the tools alone."""

    number: int
    profile: str
    prompt: str = ""
    reason: str = ""
    steps: list[StepStats] = field(default_factory=list)
    tool_calls: int = 0
    tool_seconds: float = 0.0

    @property
    def stats(self) -> StepStats:
        return total(self.steps)


class TurnLog:
    """Adds up the events of a session, old ones included."""

    def __init__(self, profile: str) -> None:
        self.rows: list[TurnRow] = []
        self._profile = profile
        self._rates: dict[str, float] = {}

    def observe(self, event: Event) -> None:
        if isinstance(event, SessionStarted):
            self._profile = event.profile
        elif isinstance(event, TurnStarted):
            self.rows.append(TurnRow(number=len(self.rows) + 1, profile=self._profile))
        elif self.rows:
            self._add(self.rows[-1], event)

    def observe_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self.observe(event)

    @property
    def context_tokens(self) -> int:
        """Tokens that the conversation took up after the last step; 0 before the first."""
        steps = [step for row in self.rows for step in row.steps]
        return steps[-1].context_tokens if steps else 0

    def prefill_rate(self, profile: str) -> float | None:
        """Tokens a second of the last prompt that this profile's server evaluated in this session."""
        return self._rates.get(profile)

    def _add(self, row: TurnRow, event: Event) -> None:
        if row.reason:
            return
        if isinstance(event, UserMessageAdded):
            row.prompt = row.prompt or event.text
        elif isinstance(event, StepFinished):
            row.steps.append(event.stats)
            rate = event.stats.prefill_rate
            if rate and event.stats.prompt_tokens >= _TELLING_TOKENS:
                self._rates[row.profile] = rate
        elif isinstance(event, ToolFinished):
            row.tool_calls += 1
            row.tool_seconds += event.seconds
        elif isinstance(event, TurnFinished):
            row.reason = event.reason
