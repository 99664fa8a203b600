"""From samples to the rows of a report. Plain functions; None where there is nothing to tell.

Where llama.cpp's SPEED-Bench client has a name for a figure, it is used: avg_prompt_t_s, avg_pred_t_s,
avg_latency, draft_n, accepted, accept_rate, decode_speedup, latency_speedup.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agent.bench.measure import Measurement
from agent.bench.result import BenchResult, Sample

OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class Spread:
    """Several values of one figure."""

    median: float
    low: float
    high: float
    mean: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Spread | None":
        """None when no value is known."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        return cls(statistics.median(known), min(known), max(known), statistics.fmean(known), len(known))

    def as_table(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in ("median", "low", "high", "mean", "count")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of one server for one prompt, one category, or all of them (`overall`).

    `by_position` is the share of checked drafts whose first, second, third ... token was accepted, as far as
    the server counts that; `speedup` is decode speed against the baseline, run by run of the same prompt
    with the same seed; `latency_speedup` compares the mean time of whole replies.
    """

    server: str
    label: str
    samples: int
    failed: int
    prompt_rate: Spread | None
    decode_rate: Spread | None
    latency: Spread | None
    generated: int
    drafted: int | None
    accepted: int | None
    mean_length: float | None
    measured_here: bool
    by_position: tuple[float, ...] = ()
    speedup: Spread | None = None
    latency_speedup: float | None = None

    @property
    def accept_rate(self) -> float | None:
        """Accepted ÷ drafted."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None

    @property
    def draft_share(self) -> float | None:
        """Accepted ÷ generated."""
        return self.accepted / self.generated if self.generated and self.accepted is not None else None

    def as_table(self) -> dict[str, Any]:
        """The row as JSON, with the names of SPEED-Bench's client first."""
        return {
            "category": self.label,
            "profile": self.server,
            "requests": self.samples,
            "turns": self.samples,
            "failed": self.failed,
            "avg_prompt_t_s": self.prompt_rate.mean if self.prompt_rate else None,
            "avg_pred_t_s": self.decode_rate.mean if self.decode_rate else None,
            "avg_latency": self.latency.mean if self.latency else None,
            "draft_n": self.drafted,
            "accepted": self.accepted,
            "accept_rate": self.accept_rate,
            "generated": self.generated,
            "draft_share": self.draft_share,
            "mean_accepted_length": self.mean_length,
            "accepted_by_position": [round(part, 4) for part in self.by_position],
            "measured_here": self.measured_here,
            "prompt_t_s": self.prompt_rate.as_table() if self.prompt_rate else None,
            "pred_t_s": self.decode_rate.as_table() if self.decode_rate else None,
            "latency_s": self.latency.as_table() if self.latency else None,
            "decode_speedup": self.speedup.as_table() if self.speedup else None,
            "latency_speedup": self.latency_speedup,
        }


def rows_by_prompt(result: BenchResult) -> list[Row]:
    """For each server a row for each prompt, and one over all of them where there are several."""
    rows = []
    for server in result.servers:
        samples = result.of(server.name)
        if not samples:
            continue
        identities = list(dict.fromkeys(sample.prompt_id for sample in samples))
        for identity in identities:
            chosen = [sample for sample in samples if sample.prompt_id == identity]
            rows.append(_row(result, server.name, identity, chosen))
        if len(identities) > 1:
            rows.append(_row(result, server.name, OVERALL, samples))
    return rows


def rows_by_category(result: BenchResult) -> list[Row]:
    """For each server a row for each category, and `overall`, as SPEED-Bench's client prints them."""
    rows = []
    for server in result.servers:
        samples = result.of(server.name)
        for category in dict.fromkeys(sample.category for sample in samples):
            chosen = [sample for sample in samples if sample.category == category]
            rows.append(_row(result, server.name, category, chosen))
        if samples:
            rows.append(_row(result, server.name, OVERALL, samples))
    return rows


def overall(result: BenchResult, server: str) -> Row | None:
    """All samples of a server in one row, None when there are none."""
    samples = result.of(server)
    return _row(result, server, OVERALL, samples) if samples else None


def _row(result: BenchResult, server: str, label: str, samples: Sequence[Sample]) -> Row:
    found = [sample.measurement for sample in samples if sample.measurement]
    report = next(one for one in result.servers if one.name == server)
    others = {
        (sample.prompt_id, sample.run): sample.measurement
        for sample in (result.of(report.baseline) if report.baseline else ())
        if sample.measurement
    }
    pairs = [
        (sample.measurement, others[sample.prompt_id, sample.run])
        for sample in samples
        if sample.measurement and (sample.prompt_id, sample.run) in others
    ]
    return Row(
        server=server,
        label=label,
        samples=len(found),
        failed=len(samples) - len(found),
        prompt_rate=Spread.of(one.prompt_rate for one in found),
        decode_rate=Spread.of(one.decode_rate for one in found),
        latency=Spread.of(one.total_seconds for one in found),
        generated=sum(one.decoded_tokens for one in found),
        drafted=_sum(one.drafted for one in found),
        accepted=_sum(one.accepted for one in found),
        mean_length=_mean_length(found),
        measured_here=any(one.measured_here for one in found),
        by_position=_by_position(found),
        speedup=Spread.of(_ratio(one.decode_rate, other.decode_rate) for one, other in pairs),
        latency_speedup=_ratio(
            sum(other.total_seconds for _, other in pairs), sum(one.total_seconds for one, _ in pairs)
        ),
    )


def _mean_length(found: Sequence[Measurement]) -> float | None:
    """Over several replies: all accepted tokens by all checks; None when a number of checks is not known."""
    drafting = [one for one in found if one.drafted]
    if drafting and not any(one.accepted for one in drafting):
        return 1.0  # however many checks it were
    checks = [one.checks for one in drafting if one.checks]
    if not checks or len(checks) < len(drafting):
        return None
    return 1 + sum(one.accepted or 0 for one in drafting) / sum(checks)


def _by_position(found: Sequence[Measurement]) -> tuple[float, ...]:
    counted = [one for one in found if one.accepted_per_position and one.checks]
    checks = sum(one.checks or 0 for one in counted)
    longest = max((len(one.accepted_per_position) for one in counted), default=0)
    sums = [
        sum(one.accepted_per_position[place] for one in counted if place < len(one.accepted_per_position))
        for place in range(longest)
    ]
    while sums and not sums[-1]:
        sums.pop()
    return tuple(accepted / checks for accepted in sums)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None
