"""From what a server reports about a reply to the figures of a step."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.core.stats import StepStats

_MOST_OF_FIRST_PIECE = 0.25


def from_timings(timings: Mapping[str, Any], usage: Any = None) -> StepStats:
    """Reads llama-server's `timings`. Each field on its own: builds have renamed and dropped some.

    Where `cache_n` is missing, `prompt_n` is what was evaluated, and only `usage` tells the whole prompt.
    `draft_n` and `draft_n_accepted` are only there when a draft was made.
    """
    drafted, evaluated = count(timings, "draft_n"), count(timings, "prompt_n")
    cached = count(timings, "cache_n")
    if "cache_n" not in timings and isinstance(usage, Mapping):
        cached = max(0, count(usage, "prompt_tokens") - evaluated)
    return StepStats(
        prompt_tokens=evaluated,
        cached_tokens=cached,
        decoded_tokens=count(timings, "predicted_n"),
        prompt_seconds=_seconds(timings, "prompt_ms"),
        decode_seconds=_seconds(timings, "predicted_ms"),
        drafted=drafted,
        accepted=count(timings, "draft_n_accepted"),
        source="server",
        draft_source="server" if drafted else "",
    )


@dataclass(frozen=True, slots=True)
class Arrival:
    """When a streamed reply came: seconds from the request to its first and to its last piece.

    `first_share` is the part of the reply (0 to 1) that the first piece held.
    """

    pieces: int
    first_seconds: float
    last_seconds: float
    first_share: float


def from_usage(usage: Any, arrival: Arrival) -> StepStats:
    """For replies without `timings`: token counts from `usage`, times as measured here.

    Without `usage`, as in a reply that was broken off, the pieces stand for tokens, and nothing is said about
    speed: with a draft a piece holds several tokens. Nor is it where the first piece held much of the reply,
    as a call that a server sends whole: its time is that of reading and of writing.
    """
    if not isinstance(usage, Mapping):
        return StepStats(decoded_tokens=arrival.pieces, source="measured", counted=False)
    details = usage.get("prompt_tokens_details")
    cached = count(details, "cached_tokens") if isinstance(details, Mapping) else 0
    prompt, decoded = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    streamed = arrival.pieces > 0 and arrival.first_share <= _MOST_OF_FIRST_PIECE
    timed = max(0, decoded - max(1, round(decoded * arrival.first_share))) if streamed else 0
    return StepStats(
        prompt_tokens=max(0, prompt - cached),
        cached_tokens=cached,
        decoded_tokens=decoded,
        prompt_seconds=arrival.first_seconds if streamed else 0.0,
        decode_seconds=max(0.0, arrival.last_seconds - arrival.first_seconds) if timed else 0.0,
        source="measured",
        timed_tokens=timed,
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
