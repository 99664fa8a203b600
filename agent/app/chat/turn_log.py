"""What each turn of a session cost, for a screen of details and for estimates."""

from dataclasses import dataclass, field

from agent.app.chat.sizes import was_counted
from agent.core.events import (
    CompactionFinished,
    Event,
    Rewound,
    SessionStarted,
    StepFinished,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    UserMessageAdded,
)
from agent.core.stats import StepStats, total


@dataclass(slots=True, kw_only=True)
class TurnRow:
    """One turn. `reason` is empty while it runs.

    `started` is in seconds since 1970, 0 where it is not known. `changed` are paths of files that tools
    changed, `contexts` the tokens of the conversation after each step that was counted, or summary. `is_gone`
    says that a person has taken the turn back.
    """

    number: int
    profile: str
    started: float = 0.0
    prompt: str = ""
    reason: str = ""
    steps: list[StepStats] = field(default_factory=list)
    tool_calls: int = 0
    changed: list[str] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)
    is_gone: bool = False

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
            number = len(self.rows) + 1
            self.rows.append(TurnRow(number=number, profile=self._profile, started=event.started))
        elif isinstance(event, Rewound):
            if event.what != "files":
                for row in self.rows[event.to_turn - 1 :]:
                    row.is_gone = True
        elif isinstance(event, CompactionFinished):
            if self.rows:
                self.rows[-1].contexts.append(event.after)
        elif self.rows:
            self._add(self.rows[-1], event)

    @property
    def context_tokens(self) -> int:
        """Tokens that the conversation took up after the last step of what is left; 0 before the first."""
        contexts = [tokens for row in self.rows if not row.is_gone for tokens in row.contexts]
        return contexts[-1] if contexts else 0

    def prefill_rate(self, profile: str) -> float | None:
        """Tokens a second of the last prompt that this profile's server evaluated in this session."""
        return self._rates.get(profile)

    def _add(self, row: TurnRow, event: Event) -> None:
        if row.reason:
            return
        if isinstance(event, UserMessageAdded):
            row.prompt = row.prompt or ("" if event.is_note else event.text)
        elif isinstance(event, StepFinished):
            row.steps.append(event.stats)
            if was_counted(event.stats):
                row.contexts.append(event.stats.context_tokens)
            if rate := event.stats.telling_prefill_rate:
                self._rates[row.profile] = rate
        elif isinstance(event, ToolFinished):
            row.tool_calls += 1
            row.changed += [diff.path for diff in event.diffs if diff.path not in row.changed]
        elif isinstance(event, TurnFinished):
            row.reason = event.reason
