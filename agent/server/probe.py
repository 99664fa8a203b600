"""Questions to a running server: is it ours, is it busy, what does it offer, does it really answer."""

from dataclasses import dataclass
from typing import Any

from agent.server.loopback import request_json
from agent.server.record import Record

_WARM_UP_SECONDS = 120.0
_BUSY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server says about itself. `context_tokens` is per slot.

    `tool_calls`: whether the model's chat template can express them; None when the server does not say.
    """

    context_tokens: int
    slots: int
    tool_calls: bool | None = None


def key_is_accepted(record: Record, timeout: float = 5.0) -> bool | None:
    """Whether the server on that port knows our key; None when it does not answer at all."""
    try:
        status, _ = request_json(record.port, "GET", "/v1/models", record.api_key, timeout=timeout)
    except OSError:
        return None
    return status == 200


def offer_of(port: int, api_key: str) -> Offer | None:
    """Reads `/props`; None when the server there does not take the key or is no llama-server."""
    try:
        status, answer = request_json(port, "GET", "/props", api_key)
    except OSError:
        return None
    return offer_in(answer) if status == 200 else None


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


def busy_slots(record: Record, timeout: float = _BUSY_SECONDS) -> int | None:
    """How many slots are at work; None when the server does not answer in time.

    `/slots` is answered between two batches. A server that is healthy but silent here is therefore
    reading a long prompt: callers take None of a healthy server for busy.
    """
    try:
        status, slots = request_json(record.port, "GET", "/slots", record.api_key, timeout=timeout)
    except OSError:
        return None
    if status != 200 or not isinstance(slots, list):
        return None
    return sum(1 for slot in slots if isinstance(slot, dict) and slot.get("is_processing"))


def is_busy(record: Record) -> bool:
    """Whether stopping the server now would interrupt somebody."""
    count = busy_slots(record)
    return record.is_healthy if count is None else count > 0


def warm_up(port: int, api_key: str, tokens: int) -> int | None:
    """Lets the server produce a few tokens, so that the first real request finds it loaded.

    Returns:
        How many tokens were drafted.

    Raises:
        OSError: the server did not answer, or went away.
    """
    body = {"prompt": "one two three one two three", "n_predict": tokens, "cache_prompt": False}
    status, answer = request_json(port, "POST", "/completion", api_key, body, timeout=_WARM_UP_SECONDS)
    if status != 200 or not isinstance(answer, dict):
        raise OSError(f"the warm-up request was answered with status {status}")
    drafted = answer.get("timings", {}).get("draft_n", 0)
    return drafted if isinstance(drafted, int) else 0
