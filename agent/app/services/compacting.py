"""A conversation with a person made short: at its wish, or before a turn that finds it nearly full.

In the middle of a turn the loop does the same, see `agent.core.compaction`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.app.chat.engine import Engine
from agent.app.chat.live import LiveSession
from agent.app.chat.wording import suit_the_blind
from agent.app.turns.result_room import compactor_at, compactor_for
from agent.core import trimming
from agent.core.cancel import InterruptedRunError, closing
from agent.core.compaction import Compactor
from agent.core.errors import UsageError
from agent.core.events import CompactionFinished, Event, Notice, PrefixBroken
from agent.core.leaving_out import CAUSE
from agent.core.messages import AssistantMessage, Message

# What the last turns may take up of the window and of what there is, to stay as they are.
_KEPT_SHARE = 0.2
_KEPT_OF_ALL = 0.25
_KEPT_TURNS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Tokens `before` and `after` (an estimate), and the summary that takes the place of what was said."""

    before: int
    after: int
    summary: str


async def compact(live: LiveSession, engine: Engine, instruction: str = "") -> Compaction:
    """Makes the conversation short at a person's wish. `instruction` says what the summary is to be about.

    Raises:
        UsageError: there is nothing to sum up, or no summary came; the conversation is as it was then.
        InterruptedRunError: a person interrupted it; the same.
    """
    live.suit(engine)
    await suit_the_blind(live, engine)
    if not any(isinstance(one, AssistantMessage) for one in live.record.conversation.messages):
        raise UsageError("there is nothing to sum up yet")
    # A person may ask for it also where the settings say never.
    share = live.loaded.settings.limits.compact_at or 1.0
    compactor = compactor_at(share, engine.model, engine.reply_tokens, live.log)
    finished = await _compact(live, engine, compactor, instruction, by_hand=True)
    if live.cancel.is_set():
        live.leave_off()
    if finished.detail and live.cancel.is_set():
        raise InterruptedRunError
    if finished.detail:
        raise UsageError(
            f"the conversation stays as it is: {finished.detail}", "try again, or begin a new one"
        )
    return Compaction(before=finished.before, after=finished.after, summary=finished.summary)


async def compact_if_full(live: LiveSession, engine: Engine) -> None:
    """At the beginning of a turn: makes room where the settings want that, before files are attached."""
    compactor = compactor_for(engine.model, live.loaded.settings, engine.reply_tokens, live.log)
    conversation = live.record.conversation
    if compactor is None or not await compactor.is_full(conversation):
        return
    if await compactor.leave_out(conversation):
        live.emit(PrefixBroken(cause=CAUSE))
        live.takes_up(compactor.size)
        return
    live.emit(Notice(text="the context is nearly full, so the model sums up the conversation first"))
    finished = await _compact(live, engine, compactor, "", by_hand=False)
    if finished.detail and not live.cancel.is_set():
        text = f"the context is nearly full and could not be made shorter: {finished.detail}"
        live.emit(Notice(text=text, level="warning"))


async def _compact(
    live: LiveSession, engine: Engine, compactor: Compactor, instruction: str, *, by_hand: bool
) -> CompactionFinished:
    conversation = live.record.conversation
    ratio = conversation.characters_per_token
    old = conversation.messages
    size = trimming.tokens_of(old, ratio)
    budget = min((engine.model.context_tokens or size) * _KEPT_SHARE, size * _KEPT_OF_ALL)
    start = _kept_from(old, list(conversation.marks.values()), budget, ratio)
    finished: CompactionFinished | None = None
    events = compactor.compact(conversation, instruction=instruction, by_hand=by_hand, keep_from=start)
    async with closing(events):
        async for event in events:
            live.emit(event)
            finished = tell_size(live, event) or finished
    if finished is None:
        raise RuntimeError("a compaction has to end with its result")
    return finished


def tell_size(live: LiveSession, event: Event) -> CompactionFinished | None:
    """Takes note of how large the conversation is after a compaction; None for any other event."""
    if not isinstance(event, CompactionFinished):
        return None
    if event.after != event.before:
        live.takes_up(event.after)
    return event


def _kept_from(messages: Sequence[Message], marks: Sequence[int], budget: float, ratio: float) -> int:
    """Where the turns begin that stay as they are: the last two if they fit, and never the first."""
    start = len(messages)
    kept = 0
    for mark in sorted(set(marks), reverse=True):
        if mark >= len(messages):
            continue  # the turn that begins right now
        if kept == _KEPT_TURNS or mark <= 1 or trimming.tokens_of(messages[mark:], ratio) > budget:
            break
        start = mark
        kept += 1
    return start
