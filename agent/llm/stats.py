"""From what a server reports about a reply to the figures of a step."""

import math
from collections.abc import Mapping
from typing import Any

from agent.core.stats import StepStats


def from_timings(timings: Mapping[str, Any]) -> StepStats:
    """Reads llama-server's `timings`. Each field on its own: builds have renamed and dropped some.

    `draft_n` and `draft_n_accepted` are only there when a draft was made.
    """
    return StepStats(
        prompt_tokens=count(timings, "prompt_n"),
        cached_tokens=count(timings, "cache_n"),
        decoded_tokens=count(timings, "predicted_n"),
        prompt_seconds=_seconds(timings, "prompt_ms"),
        decode_seconds=_seconds(timings, "predicted_ms"),
        drafted=count(timings, "draft_n"),
        accepted=count(timings, "draft_n_accepted"),
        source="server",
    )


def from_usage(usage: Any, *, pieces: int, first_token_seconds: float, total_seconds: float) -> StepStats:
    """For replies without `timings`: token counts from `usage`, times as measured here.

    `pieces` is the number of chunks that came, which stands for tokens where the server counted none, as in
    a reply that was broken off.
    """
    decode_seconds = max(0.0, total_seconds - first_token_seconds) if pieces else 0.0
    if not isinstance(usage, Mapping):
        return StepStats(decoded_tokens=pieces, decode_seconds=decode_seconds, source="measured")
    details = usage.get("prompt_tokens_details")
    cached = count(details, "cached_tokens") if isinstance(details, Mapping) else 0
    prompt = count(usage, "prompt_tokens")
    return StepStats(
        prompt_tokens=max(0, prompt - cached),
        cached_tokens=cached,
        decoded_tokens=count(usage, "completion_tokens"),
        prompt_seconds=first_token_seconds,
        decode_seconds=decode_seconds,
        source="measured",
    )


def count(record: Mapping[str, Any], key: str) -> int:
    """A number of things from a server's JSON; 0 where it is missing or no number."""
    return int(_number(record, key))


def _seconds(timings: Mapping[str, Any], key: str) -> float:
    return _number(timings, key) / 1000


def _number(record: Mapping[str, Any], key: str) -> float:
    value = record.get(key)
    if not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return max(value, 0)
