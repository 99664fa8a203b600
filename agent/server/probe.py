"""Questions to a running server: is it ours, is it busy, what does it offer, does it really answer."""

import time
from dataclasses import dataclass
from typing import Any

from agent.server.loopback import request_json
from agent.server.record import Record

_WARM_UP_SECONDS = 120.0
_BUSY_SECONDS = 2.0
_PROPS_SECONDS = 5.0
_GIVEN_UP_SECONDS = 3.0
_LOOK_AGAIN_SECONDS = 0.2
_FIRST_PLAIN_TOKEN = 1000
"""Lower ones may have a meaning of their own, such as the end of a text."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server says about itself. `context_tokens` is per slot.

    `tool_calls`: whether the model's chat template can express them; None when the server does not say.
    `engine` is a name of `agent.server.engines`, `model` what requests have to name there (llama-server has
    one model and takes any name). `names` are what the server calls its model, for people and for its card.
    """

    context_tokens: int
    slots: int
    tool_calls: bool | None = None
    engine: str = "llama-server"
    model: str = ""
    names: tuple[str, ...] = ()


def key_is_accepted(record: Record) -> bool | None:
    """Whether the server on that port knows our key; None when it does not answer at all."""
    try:
        status, _ = _get(record, "/v1/models", _PROPS_SECONDS)
    except OSError:
        return None
    return status == 200


def props_of(record: Record) -> dict[str, Any] | None:
    """What `/props` says; None when the server does not answer, or does not take the key."""
    try:
        status, answer = _get(record, "/props", _PROPS_SECONDS)
    except OSError:
        return None
    return answer if status == 200 and isinstance(answer, dict) else None


def offer_of(record: Record) -> Offer | None:
    """What the server of `record` offers; None when it does not answer, or has no model of its own."""
    return offer_in(props_of(record))


def is_router(props: dict[str, Any] | None) -> bool:
    """Whether the server has no model of its own and passes requests on, which it is without any `-m`."""
    return props is not None and props.get("role") == "router"


def slots_of(record: Record) -> list[dict[str, Any]] | None:
    """What `/slots` says; None when the server does not answer in time or keeps it to itself."""
    try:
        status, slots = _get(record, "/slots", _BUSY_SECONDS)
    except OSError:
        return None
    if status != 200 or not isinstance(slots, list):
        return None
    return [slot for slot in slots if isinstance(slot, dict)]


def offer_in(answer: Any) -> Offer | None:
    """What the JSON of `/props` says; None when it is something else."""
    if not isinstance(answer, dict):
        return None
    settings = answer.get("default_generation_settings")
    context = settings.get("n_ctx") if isinstance(settings, dict) else None
    slots = answer.get("total_slots")
    if not isinstance(context, int) or context <= 0:
        return None
    return Offer(context, slots if isinstance(slots, int) and slots > 0 else 1, _tool_calls(answer))


def _tool_calls(props: dict[str, Any]) -> bool | None:
    """What `chat_template_caps` of llama-server's `/props` says about tools (servers since 2025)."""
    caps = props.get("chat_template_caps")
    if not isinstance(caps, dict):
        return None
    said = [caps[name] for name in ("supports_tools", "supports_tool_calls") if name in caps]
    return all(said) if said else None


def busy_slots(record: Record) -> int | None:
    """How many slots are at work; None when the server does not answer in time.

    `/slots` is answered between two batches. A server that is healthy but silent here is therefore
    reading a long prompt: callers take None of a healthy server for busy.
    """
    slots = slots_of(record)
    return None if slots is None else sum(1 for slot in slots if slot.get("is_processing"))


def is_busy(record: Record) -> bool:
    """Whether stopping the server now would interrupt somebody."""
    count = busy_slots(record)
    return record.is_healthy if count is None else count > 0


def stays_busy(record: Record, seconds: float = _GIVEN_UP_SECONDS) -> bool:
    """Whether it is still at work after so long: a request that was given up ends with the batch it is in."""
    deadline = time.monotonic() + seconds
    while is_busy(record):
        if time.monotonic() >= deadline:
            return True
        time.sleep(_LOOK_AGAIN_SECONDS)
    return False


def warm_up(record: Record, tokens: int) -> int:
    """Lets the server produce a few tokens, so that the first real request finds it loaded.

    Returns:
        How many tokens were drafted.

    Raises:
        OSError: the server did not answer, or went away.
    """
    body = {
        "prompt": "one two three one two three",
        "n_predict": tokens,
        "cache_prompt": False,
        "ignore_eos": True,  # a model that has nothing to say would not draft either
    }
    status, answer = request_json(
        record.port, "POST", "/completion", record.api_key, body, _WARM_UP_SECONDS, record.host
    )
    if status != 200 or not isinstance(answer, dict):
        raise OSError(f"the warm-up request was answered with status {status}")
    timings = answer.get("timings")
    drafted = timings.get("draft_n", 0) if isinstance(timings, dict) else 0
    return drafted if isinstance(drafted, int) else 0


def reading_rate(record: Record, tokens: int) -> float | None:
    """Lets the server read a prompt of so many tokens; tok/s by its own clock, None where it does not say.

    Raises:
        OSError: the server did not answer, or went away.
    """
    body = {
        "prompt": list(range(_FIRST_PLAIN_TOKEN, _FIRST_PLAIN_TOKEN + tokens)),
        "n_predict": 1,
        "cache_prompt": False,
    }
    status, answer = request_json(
        record.port, "POST", "/completion", record.api_key, body, _WARM_UP_SECONDS, record.host
    )
    timings = answer.get("timings") if status == 200 and isinstance(answer, dict) else None
    if not isinstance(timings, dict):
        return None
    read, milliseconds = timings.get("prompt_n"), timings.get("prompt_ms")
    if not isinstance(read, int) or not isinstance(milliseconds, int | float):
        return None
    return read / milliseconds * 1000 if read >= tokens and milliseconds > 0 else None


def _get(record: Record, path: str, timeout: float) -> tuple[int, Any]:
    return request_json(record.port, "GET", path, record.api_key, timeout=timeout, host=record.host)
