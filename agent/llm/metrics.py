"""What an engine's own metrics say about drafting, for replies that say nothing of it themselves.

vLLM counts (`vllm:spec_decode_num_draft_tokens_total` and its neighbours, in vllm/v1/spec_decode/metrics.py):
the difference between two looks is exact as long as nobody else's request was served between them. SGLang
gives gauges of its latest decode interval (`sglang:spec_accept_rate`, `sglang:spec_accept_length`, with
`--enable-metrics`): they are taken as they are, if they changed. Where somebody else was served meanwhile,
nothing is said.
"""

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from agent.core.stats import StepStats

MetricsKind = Literal["vllm", "sglang"]
ReadMetrics = Callable[[], Awaitable[str | None]]
"""Gives the text of `/metrics`; None where there is none."""

_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{([^}]*)\})?\s+(\S+)", re.MULTILINE)
_POSITION = re.compile(r'\bposition="(\d{1,4})"')
_RUNNING = ("num_requests_running", "num_requests_waiting", "num_running_reqs", "num_queue_reqs")
_DRAFTS = "spec_decode_num_drafts_total"
_DRAFTED = "spec_decode_num_draft_tokens_total"
_ACCEPTED = "spec_decode_num_accepted_tokens_total"
_BY_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"
_REQUESTS = ("request_success_total", "num_requests_total")
_GENERATED = "generation_tokens_total"
_RATE = "spec_accept_rate"
_LENGTH = "spec_accept_length"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look at the metrics: sums over all models and workers, and the accepted tokens by position."""

    sums: Mapping[str, float]
    by_position: tuple[int, ...] = ()

    @property
    def at_work(self) -> int:
        """Requests that are served or wait."""
        return int(sum(self.sums.get(name, 0) for name in _RUNNING))


def read_snapshot(text: str, kind: MetricsKind) -> Snapshot | None:
    """Parses a Prometheus text; None when the engine says nothing about drafting in it."""
    sums: dict[str, float] = {}
    positions: dict[int, float] = {}
    for name, labels, number in _SAMPLE.findall(text):
        prefix, _, short = name.partition(":")
        value = _number(number)
        if prefix != kind or value is None:
            continue
        position = _POSITION.search(labels)
        if short == _BY_POSITION and position:
            positions[int(position[1])] = positions.get(int(position[1]), 0) + value
        elif short in (_RATE, _LENGTH):
            sums[short] = max(value, sums.get(short, 0))  # every worker of a group reports the same one
        else:
            sums[short] = sums.get(short, 0) + value
    wanted = (_DRAFTED, _ACCEPTED) if kind == "vllm" else (_RATE,)
    if any(name not in sums for name in wanted):
        return None
    length = max(positions, default=-1) + 1
    return Snapshot(sums, tuple(int(positions.get(index, 0)) for index in range(length)))


def with_drafting(stats: StepStats, before: Snapshot, after: Snapshot, kind: MetricsKind) -> StepStats:
    """`stats` with the figures of drafting, where the two looks say that nobody else was served meanwhile."""
    # SGLang brings its gauge of requests up to date every few steps: our own may still stand there.
    if max(before.at_work, after.at_work) > (1 if kind == "sglang" else 0) or stats.draft_source:
        return stats
    if max(_grown(before, after, name) for name in _REQUESTS) > 1:
        return stats
    if stats.counted and _grown(before, after, _GENERATED) > stats.decoded_tokens:
        return stats
    return _counted(stats, before, after) if kind == "vllm" else _gauged(stats, before, after)


def _counted(stats: StepStats, before: Snapshot, after: Snapshot) -> StepStats:
    drafts, drafted, accepted = (_grown(before, after, name) for name in (_DRAFTS, _DRAFTED, _ACCEPTED))
    if drafted <= 0 or not 0 <= accepted <= drafted:
        return stats
    earlier = before.by_position + (0,) * (len(after.by_position) - len(before.by_position))
    grown = tuple(late - early for late, early in zip(after.by_position, earlier, strict=False))
    return replace(
        stats,
        drafted=drafted,
        accepted=accepted,
        draft_rounds=max(0, drafts),
        accepted_by_position=grown if sum(grown) == accepted else (),
        draft_source="engine metrics",
    )


def _gauged(stats: StepStats, before: Snapshot, after: Snapshot) -> StepStats:
    rate, length = after.sums.get(_RATE, 0), after.sums.get(_LENGTH, 0)
    unchanged = (rate, length) == (before.sums.get(_RATE, 0), before.sums.get(_LENGTH, 0))
    if unchanged or not 0 < rate <= 1:
        return stats
    return replace(
        stats,
        engine_acceptance=rate,
        engine_accepted_length=length if length >= 1 else None,
        draft_source="engine metrics",
    )


class MetricsWatch:
    """Looks at the metrics before and after each reply. Gives up for good when there are none."""

    def __init__(self, kind: MetricsKind, read: ReadMetrics) -> None:
        self._kind: MetricsKind = kind
        self._read = read
        self._gave_up = False
        self._before: Snapshot | None = None

    async def begin(self) -> None:
        self._before = await self._look()
        self._gave_up = self._before is None

    async def completed(self, stats: StepStats) -> StepStats:
        """`stats` of the reply since `begin`, with what the metrics say about drafting."""
        before, self._before = self._before, None
        if before is None or not stats.decoded_tokens:
            return stats
        after = await self._look()
        return with_drafting(stats, before, after, self._kind) if after else stats

    async def _look(self) -> Snapshot | None:
        text = None if self._gave_up else await self._read()
        return read_snapshot(text, self._kind) if text else None


def _grown(before: Snapshot, after: Snapshot, name: str) -> int:
    return int(after.sums.get(name, 0) - before.sums.get(name, 0))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
