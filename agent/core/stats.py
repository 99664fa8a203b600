"""Figures of one model step and of a turn: counts in tokens, times in seconds, rates in tok/s."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

StatsSource = Literal["server", "measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStats:
    """What one request cost.

    `prompt_tokens` are the ones that had to be evaluated, without `cached_tokens`. `drafted` is 0
    when no draft was made, and then there is no acceptance rate. `source` says whether the server
    reported the times (llama-server's `timings`) or they were measured here.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    decoded_tokens: int = 0
    prompt_seconds: float = 0.0
    decode_seconds: float = 0.0
    drafted: int = 0
    accepted: int = 0
    source: StatsSource = "server"

    @property
    def context_tokens(self) -> int:
        """Tokens that the slot holds after this step."""
        return self.cached_tokens + self.prompt_tokens + self.decoded_tokens

    @property
    def decode_rate(self) -> float | None:
        return self.decoded_tokens / self.decode_seconds if self.decode_seconds > 0 else None

    @property
    def prefill_rate(self) -> float | None:
        return self.prompt_tokens / self.prompt_seconds if self.prompt_seconds > 0 else None

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted divided by drafted tokens."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def cached_share(self) -> float | None:
        """Share of the prompt that came from the server's cache."""
        total = self.cached_tokens + self.prompt_tokens
        return self.cached_tokens / total if total else None


def total(steps: Iterable[StepStats]) -> StepStats:
    """Sums steps, so that every rate of the result divides by model time only."""
    steps = list(steps)
    measured = any(step.source == "measured" for step in steps)
    return StepStats(
        prompt_tokens=sum(step.prompt_tokens for step in steps),
        cached_tokens=sum(step.cached_tokens for step in steps),
        decoded_tokens=sum(step.decoded_tokens for step in steps),
        prompt_seconds=sum(step.prompt_seconds for step in steps),
        decode_seconds=sum(step.decode_seconds for step in steps),
        drafted=sum(step.drafted for step in steps),
        accepted=sum(step.accepted for step in steps),
        source="measured" if measured else "server",
    )
