"""Where a turn wants room in its window: what it may wait for, and what it must not try again and again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import pytest

from agent.core.guide import Offer
from agent.core.limits import StepLimit, TimeLimit
from agent.core.messages import AssistantMessage, Message, Picture, SystemMessage, UserMessage
from agent.core.model import ModelItem, Reply
from agent.core.stats import StepStats
from agent.core.turn import Conversation
from tests.core.test_compaction import begun, of, page, reading, room_for, turn
from tests.fakes.windowed_model import WindowedModel, calling

TOO_LONG = " ".join(f"word{number}" for number in range(8_000))


class NeverSumsUp(WindowedModel):
    """A request for a summary is taken, and nothing comes."""

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, offer: Offer
    ) -> AsyncIterator[ModelItem]:
        if offer.tools == frozenset({"finish"}):
            await asyncio.Event().wait()
        async for item in super().generate(messages, max_tokens=max_tokens, offer=offer):
            yield item


async def test_the_time_limit_ends_a_summary_that_does_not_come():
    now = [0.0]
    pages = [page(number, 8_000) for number in range(12)]

    def answer(number: int) -> AssistantMessage:
        now[0] = 59.99  # all the time but a moment is gone before there is a summary
        return calling(number, "read", count=number)

    model = NeverSumsUp(answer, 16_384)
    limit = TimeLimit(60, clock=lambda: now[0])
    conversation = begun()
    events = await turn(room_for(model, [reading(pages)], guards=[limit]), conversation)
    assert of(events, "turn_finished")[0].reason == "time_limit"
    [end] = of(events, "compaction_finished")
    assert (end.after, end.detail) == (end.before, "the time is up")


@pytest.mark.parametrize("words", [20, 600])
async def test_a_first_reply_that_meets_the_window_again_and_again_ends_the_turn(words: int):
    model = WindowedModel(lambda _: TOO_LONG, 2_048)
    services = room_for(model, [reading([])], guards=[StepLimit(25)])
    events = await turn(services, begun(), "word " * words)
    assert of(events, "turn_finished")[0].reason == "gave_up"
    assert len(model.requests) == 3
    assert not any("sums up" in one.text for one in of(events, "notice"))


class CountsWrongly(WindowedModel):
    """Says of a prompt only what `counts` makes of it, and of one that is too long nothing at all."""

    def __init__(self, counts: Callable[[StepStats], int], pages: int, window: int) -> None:
        super().__init__(lambda n: calling(n, "read", count=n) if n < pages else "Done.", window)
        self._counts = counts

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, offer: Offer
    ) -> AsyncIterator[ModelItem]:
        async for item in super().generate(messages, max_tokens=max_tokens, offer=offer):
            if isinstance(item, Reply):
                told = StepStats(prompt_tokens=self._counts(item.stats), decoded_tokens=1)
                yield replace(item, window=0, stats=told)
            else:
                yield item


@pytest.mark.parametrize("window", [4_096, 16_384])
@pytest.mark.parametrize(
    "counts",
    [
        lambda _: 1,
        lambda stats: stats.prompt_tokens,
        lambda stats: (stats.prompt_tokens + stats.cached_tokens) // 10,
    ],
    ids=["one token", "what was evaluated anew", "a tenth"],
)
async def test_a_server_that_counts_too_few_tokens_does_not_end_the_turn(
    counts: Callable[[StepStats], int], window: int
):
    model = CountsWrongly(counts, 30, window)
    events = await turn(room_for(model, [reading([page(n, 2_500) for n in range(30)])]), begun())
    assert of(events, "turn_finished")[0].reason == "done"


def test_an_image_does_not_pass_for_text_of_which_each_character_is_a_token():
    conversation = Conversation(messages=[SystemMessage("Be brief."), UserMessage("Hello.")], requested=2)
    conversation.measure(StepStats(prompt_tokens=500), with_reply=False)
    usual = conversation.characters_per_token
    seen = Picture("a.png", "a.png", "image/png")
    conversation.add(UserMessage("What is wrong here? " * 30, (seen,)))
    conversation.requested = 3
    conversation.measure(StepStats(prompt_tokens=500 + 170 + 1_400), with_reply=False)
    assert conversation.characters_per_token == usual
    assert conversation.tokens == 2_070


async def test_a_conversation_that_fits_and_cannot_become_shorter_is_not_said_to_be_too_long():
    model = WindowedModel(lambda number: calling(number, "read", count=0) if not number else TOO_LONG, 4_096)
    events = await turn(room_for(model, [reading(["x = 1"])]), begun("Be brief. " * 400), "Look.")
    [end] = of(events, "turn_finished")
    assert (end.reason, "cannot fit" in end.detail) == ("context_full", False)
    assert "of 4096 tokens of context and cannot become much shorter" in end.detail
