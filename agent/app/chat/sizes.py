"""How large an earlier conversation is: what a server has counted of it, read out of its session file."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent.core.events import CompactionFinished, StepFinished
from agent.core.messages import Message
from agent.core.stats import StepStats
from agent.session.replay import event_from
from agent.session.transcript import messages_in


def was_counted(stats: StepStats) -> bool:
    """Whether a server has told how long the prompt was: of a step that was broken off it never does."""
    return stats.counted and stats.cached_tokens + stats.prompt_tokens > 0


def size_in(records: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Tokens of the first messages, and how many messages those are; 0 and 0 where nobody has counted any.

    What came after the last count is not among them: results of a turn that was killed, what was said in a
    step that was broken off. Where messages were replaced, only counts of what stayed before those hold.
    """
    messages: list[Message] = []
    sizes: dict[int, int] = {}
    for record in records:
        kind = record.get("type")
        if kind == "message":
            messages += messages_in([record])
        elif kind == "history" and isinstance(record.get("messages"), list):
            now = messages_in([record])
            same = _same(messages, now)
            messages, sizes = now, {count: tokens for count, tokens in sizes.items() if count <= same}
        elif kind in ("step_finished", "compaction_finished"):
            event = event_from(record)
            if isinstance(event, StepFinished) and was_counted(event.stats):
                sizes[len(messages) + 1] = event.stats.context_tokens  # the reply is written behind its step
            elif isinstance(event, CompactionFinished):
                sizes[len(messages)] = event.after
    if not sizes:
        return 0, 0
    last = max(sizes)
    return sizes[last], min(last, len(messages))


def _same(one: list[Message], other: list[Message]) -> int:
    """How many messages both begin with."""
    places = (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(places, min(len(one), len(other)))
