"""Which slot of a llama-server a second conversation can have without taking the first one's."""

from typing import Any

_NEVER_USED = -1


def slot_beside(said: Any, used_tokens: int) -> int | None:
    """The slot for a sub-agent of a conversation that holds `used_tokens`.

    The conversation's own slot is the one that holds about as many tokens, and of those the one that was used
    last. Of the others that are idle the one is chosen that was used longest ago, or never.

    Args:
        said: the answer of `GET /slots`; fields as of llama.cpp b11434.

    Returns:
        None where there is only one slot, where none is free, and where the answer is something else. The
        server then chooses, and keeps what it pushes out of a slot as far as its `--cache-ram` allows.
    """
    slots = [slot for slot in said if _is_slot(slot)] if isinstance(said, list) else []
    if len(slots) < 2:
        return None
    used = [slot for slot in slots if _last_task(slot) != _NEVER_USED]
    own = min(used, key=lambda slot: (abs(_tokens(slot) - used_tokens), -_last_task(slot)), default=None)
    free = [slot for slot in slots if slot is not own and not slot.get("is_processing")]
    return min(free, key=_last_task)["id"] if free else None


def _is_slot(slot: Any) -> bool:
    return isinstance(slot, dict) and isinstance(slot.get("id"), int)


def _last_task(slot: dict[str, Any]) -> int:
    number = slot.get("id_task")
    return number if isinstance(number, int) else _NEVER_USED


def _tokens(slot: dict[str, Any]) -> int:
    """Tokens of the last prompt and of the reply to it."""
    prompt = slot.get("n_prompt_tokens")
    following = slot.get("next_token")
    pieces = following[0] if isinstance(following, list) and following else following
    decoded = pieces.get("n_decoded") if isinstance(pieces, dict) else None
    return sum(number for number in (prompt, decoded) if isinstance(number, int))
