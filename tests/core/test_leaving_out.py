"""Results of earlier turns go before the whole conversation is summed up, where that is the cheaper way."""

from agent.core import leaving_out
from agent.core.events import Event
from agent.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from agent.core.trimming import LEFT_OUT
from agent.core.turn import Conversation
from tests.core.test_compaction import begun, of, page, reading, room_for, turn
from tests.fakes.windowed_model import WindowedModel, calling

WINDOW = 32_768
ANSWER = "The page says what was to be found out, in some words."


async def talked(model: WindowedModel, turns: int, characters: int) -> tuple[Conversation, list[Event]]:
    """A conversation in which each turn reads as many pages as the model wants."""
    pages = [page(number, characters) for number in range(100)]
    conversation, events = begun(), []
    for number in range(turns):
        services = room_for(model, [reading(pages)])
        events += await turn(services, conversation, f"Question {number}: what does the page say?")
    return conversation, events


def one_page_a_turn(number: int) -> AssistantMessage | str:
    return calling(number, "read", count=number) if number % 2 == 0 else ANSWER


async def test_results_of_earlier_turns_are_left_out_in_one_cut_and_answers_stay():
    model = WindowedModel(one_page_a_turn, WINDOW)
    conversation, events = await talked(model, turns=6, characters=12_000)
    assert [one.cause for one in of(events, "prefix_broken")] == [leaving_out.CAUSE]
    assert (model.summaries, model.refused) == ([], 0)
    results = [one.text for one in conversation.messages if isinstance(one, ToolMessage)]
    assert [text == LEFT_OUT for text in results] == [True] * 5 + [False]
    assert [one.text for one in conversation.messages if isinstance(one, AssistantMessage)].count(ANSWER) == 6
    [again] = [one for one in model.requests[1:] if one.cached < one.slot * 0.9]
    unread = 4_900  # the page of the present turn
    assert again.evaluated < unread + 1_300


async def test_within_a_turn_a_summary_is_asked_for():
    model = WindowedModel(lambda n: calling(n, "read", count=n) if n < 12 else ANSWER, WINDOW)
    _, events = await talked(model, turns=1, characters=8_000)
    assert {one.cause for one in of(events, "prefix_broken")} == {"compaction"}
    assert model.summaries


async def test_long_answers_are_summed_up_because_they_would_be_read_again():
    def answer(number: int) -> AssistantMessage | str:
        return calling(number, "read", count=number) if number % 2 == 0 else "word " * 800

    model = WindowedModel(answer, WINDOW)
    _, events = await talked(model, turns=9, characters=8_000)
    assert {one.cause for one in of(events, "prefix_broken")} == {"compaction"}


async def test_cut_frees_what_the_server_counts_and_not_what_was_estimated():
    messages: list[Message] = [
        UserMessage("First."), calling(1, "read", count=1), ToolMessage("call-1", "read", "x " * 5_000),
        AssistantMessage(ANSWER), UserMessage("Second."), AssistantMessage(ANSWER),
    ]  # fmt: skip
    counted = {"most": 1_000}

    async def count(text: str) -> int | None:
        return counted["most"] if len(text) > 1_000 else 20

    asked = {"turn_start": 4, "to_free": 1_500, "most_again": 500, "ratio": 3.0}
    assert await leaving_out.one_cut(messages, **asked, count=count) is None
    counted["most"] = 3_000
    cut = await leaving_out.one_cut(messages, **asked, count=count)
    assert cut is not None
    assert cut.saved == 2_980
    assert [one.text == LEFT_OUT for one in cut.messages] == [False, False, True, False, False, False]
    assert await leaving_out.one_cut(messages, **{**asked, "turn_start": 0}, count=count) is None
    assert await leaving_out.one_cut(messages, **{**asked, "most_again": 20}, count=count) is None
