"""Fresh attempts: where a check can tell success, a model that got stuck starts over from the same prompt.

Small models seldom find out of a wrong turn by themselves, but another sample from the unchanged prompt is
cheap: the server still has the prompt in its cache.
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from agent.core.cancel import closing
from agent.core.events import (
    Event,
    Notice,
    PrefixBroken,
    TurnFinished,
    TurnReason,
    TurnStarted,
)
from agent.core.loop import Conversation, TurnServices, run_turn
from agent.core.messages import SystemMessage
from agent.core.stats import StepStats, total

_WORTH_ANOTHER: frozenset[TurnReason] = frozenset(
    {"check_failed", "gave_up", "context_full", "attempt_limit"}
)

FRESH_ATTEMPT = "a fresh attempt starts from the first message"


class Attempts(Protocol):
    """What changes from one attempt to the next."""

    @property
    def count(self) -> int:
        """How many attempts are allowed; 1 where nothing can tell success."""
        ...

    def services(self, attempt: int, spent: StepStats, steps: int) -> TurnServices:
        """The services of attempt number `attempt` (from 1), after `steps` steps that cost `spent`."""
        ...

    def restore(self) -> Sequence[str]:
        """Undoes what the failed attempt changed; returns the paths."""
        ...


async def run_attempts(
    system_text: str,
    prompt: str,
    attempts: Attempts,
    begin: Callable[[SystemMessage], Conversation] | None = None,
) -> AsyncIterator[Event]:
    """Runs a turn, and again from the start while it fails and attempts are left.

    `begin` gives the conversation that an attempt goes on with, a new one if it is left out.

    Yields the events of all attempts; the one `TurnFinished` at the end sums them up.
    """
    finished: list[TurnFinished] = []
    for attempt in range(1, attempts.count + 1):
        spent = total(end.stats for end in finished)
        services = attempts.services(attempt, spent, sum(end.steps for end in finished))
        system = SystemMessage(system_text)
        conversation = begin(system) if begin is not None else Conversation(messages=[system])
        yield TurnStarted(attempt=attempt, started=time.time())
        async with closing(run_turn(conversation, prompt, services)) as events:
            async for event in events:
                if isinstance(event, TurnFinished):
                    finished.append(event)
                else:
                    yield event
        end = finished[-1]
        if attempt == attempts.count or end.reason not in _WORTH_ANOTHER:
            break
        restored = attempts.restore()
        files = f", {len(restored)} changed files restored" if restored else ""
        yield Notice(text=f"attempt {attempt} ended: {end.detail}{files}; starting over", level="warning")
        yield PrefixBroken(cause=FRESH_ATTEMPT)
    yield _summed(finished)


def _summed(finished: Sequence[TurnFinished]) -> TurnFinished:
    end = finished[-1]
    if end.reason == "attempt_limit":
        detail = f"the check still fails after {len(finished)} attempts"
        end = replace(end, reason="check_failed", detail=detail)
    steps = sum(one.steps for one in finished)
    return replace(end, steps=steps, stats=total(one.stats for one in finished))
