"""Figures of one model step and of a turn: counts in tokens, times in seconds, rates in tok/s."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

StatsSource = Literal["server", "measured"]
DraftSource = Literal["", "server", "engine metrics"]
_TELLING_TOKENS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStats:
    """What one request cost.

    `prompt_tokens` are the ones that had to be evaluated, without `cached_tokens`. `source` says whether the
    server reported the times (llama-server's `timings`) or they were measured here. Measured,
    `decode_seconds` begin when the first piece arrives, so that only `timed_tokens` of the decoded ones fall
    into them (None = all). Without `counted` the server gave no numbers of tokens, and `decoded_tokens` are
    the pieces that came.

    `drafted` is 0 when no draft was made or nobody says so. `draft_source` tells where the figures of
    drafting are from: the reply itself, or the engine's own metrics before and after it. `draft_rounds` is
    how often the target checked a draft, `accepted_by_position` how often the token at that place of one was
    kept. An engine that gives no counts may give its own `engine_acceptance` (0 to 1) and
    `engine_accepted_length` (tokens for each check).
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    decoded_tokens: int = 0
    prompt_seconds: float = 0.0
    decode_seconds: float = 0.0
    drafted: int = 0
    accepted: int = 0
    source: StatsSource = "server"
    timed_tokens: int | None = None
    counted: bool = True
    draft_source: DraftSource = ""
    draft_rounds: int = 0
    accepted_by_position: tuple[int, ...] = ()
    engine_acceptance: float | None = None
    engine_accepted_length: float | None = None

    @property
    def context_tokens(self) -> int:
        """Tokens that the slot holds after this step."""
        return self.cached_tokens + self.prompt_tokens + self.decoded_tokens

    @property
    def decode_rate(self) -> float | None:
        tokens = self._tokens_in_time
        return tokens / self.decode_seconds if self.decode_seconds > 0 and tokens > 0 else None

    @property
    def _tokens_in_time(self) -> int:
        return self.decoded_tokens if self.timed_tokens is None else self.timed_tokens

    @property
    def prefill_rate(self) -> float | None:
        return self.prompt_tokens / self.prompt_seconds if self.prompt_seconds > 0 else None

    @property
    def telling_prefill_rate(self) -> float | None:
        """The rate of a prompt that is long enough for it to say something about other ones."""
        return self.prefill_rate if self.prompt_tokens >= _TELLING_TOKENS else None

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted divided by drafted tokens, or what the engine gives as that."""
        return self.accepted / self.drafted if self.drafted else self.engine_acceptance

    @property
    def accepted_length(self) -> float | None:
        """Tokens for each check of a draft: the accepted ones, and the one that the target adds."""
        return 1 + self.accepted / self.draft_rounds if self.draft_rounds else self.engine_accepted_length

    @property
    def tokens_per_pass(self) -> float | None:
        """Mean tokens that one pass of the target model gave, its own one included; None without drafts.

        Unlike `accepted_length` it needs no count of checks: each token that was not drafted took a pass.
        """
        passes = self.decoded_tokens - self.accepted
        return self.decoded_tokens / passes if self.drafted and passes > 0 else None

    @property
    def cached_share(self) -> float | None:
        """Share of the prompt that came from the server's cache."""
        total = self.cached_tokens + self.prompt_tokens
        return self.cached_tokens / total if total else None


def total(steps: Iterable[StepStats]) -> StepStats:
    """Sums steps, so that every rate of the result divides by model time only."""
    steps = list(steps)
    measured = any(step.source == "measured" for step in steps)
    all_timed = all(step.timed_tokens is None for step in steps)
    sources = {step.draft_source for step in steps}
    return StepStats(
        prompt_tokens=sum(step.prompt_tokens for step in steps),
        cached_tokens=sum(step.cached_tokens for step in steps),
        decoded_tokens=sum(step.decoded_tokens for step in steps),
        prompt_seconds=sum(step.prompt_seconds for step in steps),
        decode_seconds=sum(step.decode_seconds for step in steps),
        drafted=sum(step.drafted for step in steps),
        accepted=sum(step.accepted for step in steps),
        source="measured" if measured else "server",
        timed_tokens=None if all_timed else sum(step._tokens_in_time for step in steps),
        counted=all(step.counted for step in steps),
        draft_source="engine metrics"
        if "engine metrics" in sources
        else "server"
        if "server" in sources
        else "",
        draft_rounds=_rounds(steps),
        accepted_by_position=_by_position(steps),
        engine_acceptance=_mean(steps, lambda step: step.engine_acceptance),
        engine_accepted_length=_mean(steps, lambda step: step.engine_accepted_length),
    )


def _rounds(steps: Sequence[StepStats]) -> int:
    """0 as soon as one step drafted without saying how often: the mean length would be wrong."""
    if any(step.drafted and not step.draft_rounds for step in steps):
        return 0
    return sum(step.draft_rounds for step in steps)


def _by_position(steps: Sequence[StepStats]) -> tuple[int, ...]:
    if any(step.drafted and not step.accepted_by_position for step in steps):
        return ()
    length = max((len(step.accepted_by_position) for step in steps), default=0)
    columns = [0] * length
    for step in steps:
        for position, accepted in enumerate(step.accepted_by_position):
            columns[position] += accepted
    return tuple(columns)


def _mean(steps: Sequence[StepStats], of: Callable[[StepStats], float | None]) -> float | None:
    """The mean over the steps that have the figure, each with the weight of its decoded tokens."""
    known = [(value, step.decoded_tokens) for step in steps if (value := of(step)) is not None]
    weight = sum(tokens for _, tokens in known)
    return sum(value * tokens for value, tokens in known) / weight if weight else None
