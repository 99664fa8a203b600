"""What an engine's own metrics say about drafting, for replies that say nothing of it themselves.

vLLM counts (`vllm:spec_decode_num_draft_tokens_total` and its neighbours, in vllm/v1/spec_decode/metrics.py):
the difference between two looks is exact as long as nobody else's request was served between them. SGLang
gives gauges of its latest decode interval (`sglang:spec_accept_rate`, `sglang:spec_accept_length`, with
`--enable-metrics`): they are taken as they are, if they changed. Where somebody else was served meanwhile,
nothing is said.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Literal

from agent.core.engine_metrics import ACCEPTED, DRAFTED, DRAFTS, EngineMetrics, read_metrics
from agent.core.stats import StepStats

MetricsKind = Literal["vllm", "sglang"]
ReadMetrics = Callable[[], Awaitable[str | None]]
"""Gives the text of `/metrics`; None where there is none."""

_RUNNING = ("num_requests_running", "num_requests_waiting", "num_running_reqs", "num_queue_reqs")
_REQUESTS = ("request_success_total", "num_requests_total")
_GENERATED = "generation_tokens_total"
_RATE = "spec_accept_rate"
_LENGTH = "spec_accept_length"


def read_snapshot(text: str, kind: MetricsKind) -> EngineMetrics | None:
    """Parses a Prometheus text; None when the engine says nothing about drafting in it."""
    found = read_metrics(text, kind)
    wanted = (DRAFTED, ACCEPTED) if kind == "vllm" else (_RATE,)
    return found if found.knows(*wanted) else None


def at_work(metrics: EngineMetrics) -> int:
    """Requests that are served or wait."""
    return int(sum(metrics.sums.get(name, 0) for name in _RUNNING))


def with_drafting(
    stats: StepStats, before: EngineMetrics, after: EngineMetrics, kind: MetricsKind
) -> StepStats:
    """`stats` with the figures of drafting, where the two looks say that nobody else was served meanwhile."""
    # SGLang brings its gauge of requests up to date every few steps: our own may still stand there.
    if max(at_work(before), at_work(after)) > (1 if kind == "sglang" else 0) or stats.draft_source:
        return stats
    if max(_grown(before, after, name) for name in _REQUESTS) > 1:
        return stats
    if stats.counted and _grown(before, after, _GENERATED) > stats.decoded_tokens:
        return stats
    return _counted(stats, before, after) if kind == "vllm" else _gauged(stats, before, after)


def _counted(stats: StepStats, before: EngineMetrics, after: EngineMetrics) -> StepStats:
    drafts, drafted, accepted = (_grown(before, after, name) for name in (DRAFTS, DRAFTED, ACCEPTED))
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


def _gauged(stats: StepStats, before: EngineMetrics, after: EngineMetrics) -> StepStats:
    rate, length = after.highest.get(_RATE, 0), after.highest.get(_LENGTH, 0)
    unchanged = (rate, length) == (before.highest.get(_RATE, 0), before.highest.get(_LENGTH, 0))
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
        self._before: EngineMetrics | None = None

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

    async def _look(self) -> EngineMetrics | None:
        text = None if self._gave_up else await self._read()
        return read_snapshot(text, self._kind) if text else None


def _grown(before: EngineMetrics, after: EngineMetrics, name: str) -> int:
    return int(after.sums.get(name, 0) - before.sums.get(name, 0))
