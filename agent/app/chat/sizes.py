"""What a server has had of an earlier conversation, and how large that was, read out of its session file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.core.events import CompactionFinished, StepFinished
from agent.core.messages import Message
from agent.core.stats import StepStats
from agent.core.summing import answered
from agent.session.replay import event_from
from agent.session.transcript import messages_in


def was_counted(stats: StepStats) -> bool:
    """Whether a server has told how long the prompt was: of a step that was broken off it never does."""
    return stats.counted and stats.cached_tokens + stats.prompt_tokens > 0


@dataclass(frozen=True, slots=True)
class Sizes:
    """What `core.turn.Conversation` has to know of its earlier life.

    `tokens` are those of the first `measured` messages, 0 where nobody has counted any. The last request held
    the first `requested` ones; 0 where the conversation is another one since.
    """

    tokens: int = 0
    measured: int = 0
    requested: int = 0


def sizes_in(records: Iterable[Mapping[str, Any]]) -> Sizes:
    """What a session file tells of it.

    What came after the last count is not among it: results of a turn that was killed, what was said in a
    step that was broken off. Where messages were replaced, only what is about those before them holds.
    """
    messages: list[Message] = []
    counts: dict[int, int] = {}
    requested = 0
    for record in records:
        kind = record.get("type")
        if kind == "message":
            messages += messages_in([record])
        elif kind == "history" and isinstance(record.get("messages"), list):
            now = messages_in([record])
            same = _same(messages, now)
            messages, counts = now, {place: tokens for place, tokens in counts.items() if place <= same}
            requested = requested if requested <= same else 0
        elif kind == "step_started":
            requested = len(messages)
        elif kind in ("step_finished", "compaction_finished"):
            event = event_from(record)
            if isinstance(event, CompactionFinished):
                counts[len(messages)] = event.after
            elif isinstance(event, StepFinished) and was_counted(event.stats):
                counts[len(messages) + 1] = event.stats.context_tokens  # the reply is written behind its step
            elif isinstance(event, StepFinished) and event.stop_reason == "overflow":
                requested = min(requested, answered(messages))  # the server has read nothing of it
    if not messages:
        return Sizes()
    last = max(counts, default=0)
    return Sizes(counts.get(last, 0), min(last, len(messages)), requested)


def _same(one: list[Message], other: list[Message]) -> int:
    """How many messages both begin with."""
    places = (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(places, min(len(one), len(other)))
