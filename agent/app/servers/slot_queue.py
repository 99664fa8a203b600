"""Whether a request that got no sign of the server yet waits in line, seen from two looks at `/slots`."""

from collections.abc import Sequence
from typing import Any

Slots = Sequence[dict[str, Any]]
Tasks = frozenset[Any]


def tasks_at_work(slots: Slots) -> Tasks:
    """The tasks that slots are busy with, each with its slot."""
    return frozenset((slot.get("id"), slot.get("id_task")) for slot in slots if slot.get("is_processing"))


def waits_for(slots: Slots, before: Tasks) -> str:
    """What the request waits for in a few words; empty where a slot is free, or nobody knows.

    `before` is what an earlier look found. Our own request would have told how far it is from one look to the
    next, so only tasks that were there at both are somebody else's.
    """
    if not slots or len(tasks_at_work(slots) & before) < len(slots):
        return ""
    which = "the only slot is" if len(slots) == 1 else f"all {len(slots)} slots are"
    return f"{which} busy with {'another session' if len(slots) == 1 else 'other sessions'}"
