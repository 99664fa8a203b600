"""Notices when drafting no longer pays: slower than it was once measured, or than the model alone was, or
hardly any draft accepted."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from agent.core.stats import StepStats, total


class Baseline(Protocol):
    """What the same server could do when it was measured. `decode_rate` is in tok/s, drafting included."""

    @property
    def decode_rate(self) -> float: ...

    @property
    def accept_rate(self) -> float | None:
        """Accepted of drafted tokens, 0 to 1; None where nobody knows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLimits:
    """When something is said.

    `steps` replies in a row below `share` of the baseline, where only those of at least `reply_tokens` count:
    a short one says little about speed. Or a median below `plain_share` of the speed without drafting, over
    the last `stretches`, each of as many replies as have `stretch_tokens`. Or an acceptance below
    `acceptance_floor` over `drafted_tokens`.
    """

    steps: int = 3
    share: float = 0.8
    reply_tokens: int = 32
    plain_share: float = 0.95
    stretches: int = 5
    stretch_tokens: int = 256
    acceptance_floor: float = 0.1
    drafted_tokens: int = 200


@dataclass(slots=True)
class SpeedWatch:
    """Looks at the figures of each step of a session, and speaks up once.

    Without a `baseline` and a `plain_rate`, the tok/s of the same model without drafting, only the acceptance
    is looked at. `is_over` says that it has spoken.
    """

    baseline: Baseline | None = None
    limits: WatchLimits = WatchLimits()
    is_over: bool = False
    plain_rate: float | None = None
    _stretch: list[StepStats] = field(default_factory=list)
    _rates: list[float] = field(default_factory=list)
    _slow: deque[StepStats] = field(default_factory=deque)
    _drafted: int = 0
    _accepted: int = 0

    def observe(self, stats: StepStats) -> str:
        """One line with the figures when drafting does not pay, else empty."""
        if self.is_over:
            return ""
        found = self._slower(stats) or self._slower_than_plain(stats) or self._useless(stats)
        self.is_over = bool(found)
        return found

    def _slower(self, stats: StepStats) -> str:
        rate = stats.decode_rate
        if self.baseline is None or rate is None or stats.decoded_tokens < self.limits.reply_tokens:
            return ""
        if rate >= self.limits.share * self.baseline.decode_rate:
            self._slow.clear()
            return ""
        self._slow.append(stats)
        if len(self._slow) < self.limits.steps:
            return ""
        return _slowdown(self._slow, self.baseline)

    def _slower_than_plain(self, stats: StepStats) -> str:
        if self.plain_rate is None or stats.decode_rate is None:
            return ""
        self._stretch.append(stats)
        whole = total(self._stretch)
        if whole.decoded_tokens < self.limits.stretch_tokens or whole.decode_rate is None:
            return ""
        self._stretch.clear()
        self._rates = [*self._rates, whole.decode_rate][-self.limits.stretches :]
        rate = median(self._rates)
        if len(self._rates) < self.limits.stretches or rate >= self.limits.plain_share * self.plain_rate:
            return ""
        share = rate / self.plain_rate
        alone = f"{self.plain_rate:.1f} tok/s ({share:.0%} of it)"
        return f"slower with drafts than without: {rate:.1f} tok/s, measured without {alone}"

    def _useless(self, stats: StepStats) -> str:
        self._drafted += stats.drafted
        self._accepted += stats.accepted
        if self._drafted < max(1, self.limits.drafted_tokens):
            return ""
        share = self._accepted / self._drafted
        if share >= self.limits.acceptance_floor:
            return ""
        counts = f"{self._accepted} of {self._drafted} drafted tokens"
        return (
            f"the model accepts only {share:.0%} of the draft ({counts}): drafting costs more than it gains"
        )


def _slowdown(steps: Sequence[StepStats], baseline: Baseline) -> str:
    now = total(steps)
    rate = now.decode_rate or 0.0
    share = rate / baseline.decode_rate
    line = (
        f"decoding is slower than it was measured: {rate:.1f} tok/s over the last {len(steps)} replies, "
        f"baseline {baseline.decode_rate:.1f} tok/s ({share:.0%} of it)"
    )
    if now.acceptance_rate is None:
        return f"{line}, nothing was drafted" if now.source == "server" else line
    usual = f", baseline {baseline.accept_rate:.0%}" if baseline.accept_rate is not None else ""
    return f"{line}, acceptance {now.acceptance_rate:.0%}{usual}"
