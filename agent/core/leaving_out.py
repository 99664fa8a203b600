"""Old results left out instead of a summary: where that frees enough, and costs less than a summary would.

Only results of earlier turns are left out: what came of them stands in the model's own answers, which stay.
All of them go in one cut, because the server reads everything behind the first one again. Within a turn what
the model knows is in the results alone, so there a summary is the only way.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent.core import summing, trimming
from agent.core.messages import Message, UserMessage

CAUSE = "results of earlier turns were left out"
_LEAST_GAIN = 4_000
_LEAST_GAIN_SHARE = 0.25
"""Tokens, and of the window, that have to be free afterwards: a cut that comes back soon saves nothing."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The conversation without some results, and how many tokens fewer it has."""

    messages: list[Message]
    saved: int


def least_gain(window: int) -> int:
    """Tokens that have to be free below the trigger after a cut."""
    return int(max(window * _LEAST_GAIN_SHARE, min(_LEAST_GAIN, window / 2)))


async def one_cut(
    messages: Sequence[Message],
    *,
    turn_start: int,
    to_free: int,
    most_again: int,
    ratio: float,
    count: Callable[[str], Awaitable[int | None]] | None,
) -> Cut | None:
    """The results of all earlier turns left out, or of all but the last ones; None where that does not pay.

    Args:
        turn_start: where the present turn begins; its results stay.
        to_free: tokens.
        most_again: of what was answered, the most tokens that the server may have to read again.
        ratio: characters per token, where the server does not `count` them.
    """
    done = summing.answered(messages)
    turns = [
        place for place, one in enumerate(messages) if isinstance(one, UserMessage) and place <= turn_start
    ]
    for until in reversed(turns[1:]):
        shorter = trimming.without_results(messages, until)
        changed = [place for place, one in enumerate(shorter) if one is not messages[place]]
        if not changed:
            continue
        before, after = ([side[place] for place in changed] for side in (messages, shorter))
        saved = trimming.tokens_of(before, ratio) - trimming.tokens_of(after, ratio)
        if saved < to_free or trimming.tokens_of(shorter[changed[0] : done], ratio) > most_again:
            continue
        if count is not None and (exact := await _difference(before, after, count)) is not None:
            saved = exact
        if saved >= to_free:
            return Cut(shorter, saved)
    return None


async def _difference(
    before: Sequence[Message], after: Sequence[Message], count: Callable[[str], Awaitable[int | None]]
) -> int | None:
    counted = [await count("\n".join(map(trimming.text_of, side))) for side in (before, after)]
    return None if counted[0] is None or counted[1] is None else counted[0] - counted[1]
