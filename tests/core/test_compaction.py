"""A conversation that fills its window is made short in the middle of a turn, and the turn goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agent.core.compaction import Compactor
from agent.core.events import Event, TurnFinished
from agent.core.guide import Offer
from agent.core.loop import run_turn
from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agent.core.model import ModelItem
from agent.core.tool import FileDiff, Tool, ToolResult
from agent.core.turn import Conversation, TurnServices
from agent.core.worklog import BEGINNING, WorkLog
from agent.llm.protocol import to_wire
from tests.core.rig import FakeCheck, FakeTool, executor_of, services_of
from tests.fakes.chat import render_prompt, tokenize
from tests.fakes.windowed_model import TOOLS_TOKENS, WindowedModel, calling

WINDOWS = [4_096, 8_192, 32_768, 131_072]
EVALUATED = 500


def page(number: int, characters: int, alphabet: str = "word ") -> str:
    return f"page {number}\n{alphabet * (characters // len(alphabet))}"


def reading(pages: Sequence[str]) -> FakeTool:
    async def read(params: Any, _: Any) -> str:
        return pages[int(params.count)]

    return FakeTool("read", read)


def room_for(
    model: WindowedModel, tools: Sequence[Tool], reply_tokens: int = 2_048, **more: Any
) -> TurnServices:
    compactor = Compactor(
        model,
        share=0.8,
        word_request=lambda words, wish: f"SUM UP in {words} words. {wish}",
        reply_tokens=reply_tokens,
        log=more.pop("log", None) or WorkLog(),
        count=more.pop("count", model.count),
        count_request=more.pop("count_request", None),
    )
    services = services_of(model, *tools, compactor=compactor, reply_tokens=reply_tokens, **more)
    executor = executor_of(*tools)
    executor._result_limit = compactor.result_limit
    return replace(services, executor=executor)


async def turn(services: TurnServices, conversation: Conversation, prompt: str = "Read all.") -> list[Event]:
    return [event async for event in run_turn(conversation, prompt, services)]


def begun(system: str = "Be brief.") -> Conversation:
    return Conversation(messages=[SystemMessage(system)])


def of(events: Sequence[Event], kind: str) -> list[Any]:
    return [event for event in events if event.type == kind]


def steps_between_compactions(events: Sequence[Event]) -> list[int]:
    """How many replies that could be acted on there were before each compaction."""
    counts, steps = [], 1
    for event in events:
        if event.type == "step_finished":
            steps += event.stop_reason in ("stop", "tool_calls")
        elif event.type == "compaction_started":
            counts.append(steps)
            steps = 0
    return counts


def hold(model: WindowedModel, events: Sequence[Event]) -> None:
    """What is true of every session, whatever is in it."""
    assert isinstance(events[-1], TurnFinished)
    window = model.context_tokens
    # The size of the first prompt is not known before the server has counted it.
    assert all(one.prompt + one.most <= window for one in model.requests[1:])
    for before, asked in zip(model.requests, model.requests[1:], strict=False):
        if asked.is_summary and asked.slot + EVALUATED + asked.most <= window:
            assert asked.messages[: len(before.messages)] == before.messages
            assert asked.evaluated <= EVALUATED
    assert all(steps_between_compactions(events))
    done = [one for one in of(events, "compaction_finished") if one.after != one.before]
    assert all(one.after <= 0.7 * one.before for one in done)
    assert [one.cause for one in of(events, "prefix_broken")].count("compaction") == len(done)


@pytest.mark.parametrize("window", WINDOWS)
async def test_a_long_session_stays_within_the_window(window: int):
    pages = [page(number, window // 3) for number in range(40)]
    model = WindowedModel(lambda n: calling(n, "read", count=n) if n < 40 else "All read.", window)
    conversation = begun()
    events = await turn(room_for(model, [reading(pages)]), conversation)
    hold(model, events)
    assert of(events, "turn_finished")[0].reason == "done"
    assert (model.refused, len(model.requests)) == (0, 41 + len(model.summaries))
    assert model.summaries
    for asked in model.summaries:
        assert asked.evaluated <= EVALUATED
    assert all(BEGINNING in str(one.messages[1]) for one in model.requests[-2:])


async def test_by_hand_no_window_is_made_up_where_nobody_knows_it():
    pages = [page(number, 16_000) for number in range(10)]
    model = WindowedModel(
        lambda n: calling(n, "read", count=n) if n < 10 else "All read.", 0, real_window=131_072
    )
    conversation, services = begun(), room_for(model, [reading(pages)])
    await turn(services, conversation)
    assert not model.summaries
    assert services.compactor is not None
    events = [event async for event in services.compactor.compact(conversation, by_hand=True)]
    [asked], [done] = model.summaries, of(events, "compaction_finished")
    assert done.before > 20_000
    assert asked.messages[: len(model.requests[-2].messages)] == model.requests[-2].messages
    assert asked.evaluated <= EVALUATED
    assert done.after < done.before / 2


async def test_a_session_is_summed_up_in_time_where_the_server_counts_nothing():
    pages = [page(number, 3_000) for number in range(20)]
    model = WindowedModel(
        lambda n: calling(n, "read", count=n) if n < 20 else "All read.", 8_192, tells_usage=False
    )
    events = await turn(room_for(model, [reading(pages)], count=None), begun())
    assert (of(events, "turn_finished")[0].reason, model.refused) == ("done", 0)
    assert model.summaries
    assert all(steps_between_compactions(events))


async def test_a_limit_of_replies_as_large_as_the_window_does_not_sum_up_at_each_step():
    pages = [page(number, 2_700) for number in range(12)]
    model = WindowedModel(lambda n: calling(n, "read", count=n) if n < 12 else "All read.", 8_192)
    events = await turn(room_for(model, [reading(pages)], reply_tokens=8_192), begun())
    hold(model, events)
    assert (of(events, "turn_finished")[0].reason, model.refused) == ("done", 0)
    assert min(steps_between_compactions(events)) > 2


async def test_what_is_not_read_yet_follows_the_summary_whole_and_is_evaluated_once():
    pages = [page(number, 8_000) for number in range(12)]
    model = WindowedModel(lambda n: calling(n, "read", count=n) if n < 12 else "All read.", 32_768)
    events = await turn(room_for(model, [reading(pages)]), begun())
    [asked] = model.summaries
    after = model.requests[model.requests.index(asked) + 1]
    held_back = pages[sum(not one.is_summary for one in model.requests[: model.requests.index(asked)]) - 1]
    assert held_back not in str(asked.messages)
    assert after.messages[-1]["content"] == held_back
    assert after.messages[1]["content"].startswith("Read all.\n\n(Our earlier")
    assert of(events, "compaction_finished")[0].opening_kept
    assert sum(one.evaluated for one in model.requests) < 1.1 * sum(len(one) * 2 / 5 for one in pages)


async def test_one_enormous_result_never_enters_whole():
    model = WindowedModel(lambda n: calling(n, "read", count=0) if n == 0 else "Done.", 32_768)
    events = await turn(room_for(model, [reading(["x1y2 " * 400_000])]), begun())
    hold(model, events)
    assert (of(events, "turn_finished")[0].reason, model.refused) == ("done", 0)


@pytest.mark.parametrize("alphabet", ["漢字仮名", "0f:9;", "\N{GRINNING FACE}"])
async def test_dense_text_is_counted_by_the_server(alphabet: str):
    pages = [page(number, 16_000, alphabet) for number in range(6)]
    model = WindowedModel(lambda n: calling(n, "read", count=n) if n < 6 else "Done.", 8_192)
    events = await turn(room_for(model, [reading(pages)]), begun())
    hold(model, events)
    assert (of(events, "turn_finished")[0].reason, model.refused) == ("done", 0)


async def test_where_nothing_can_go_the_turn_ends_and_names_what_is_largest():
    model = WindowedModel(lambda _: "Done.", 4_096)
    prompt = "word " * 4_000
    [end] = of(await turn(room_for(model, [reading([])]), begun(), prompt), "turn_finished")
    assert end.reason == "context_full"
    assert "cannot fit into 4096 tokens" in end.detail
    assert "the first message (" in end.detail
    assert not model.requests


@pytest.mark.parametrize("before", [[], ["Hello."]])
async def test_a_message_that_never_fitted_does_not_keep_later_turns_out(before: list[str]):
    model, conversation, log = WindowedModel(lambda _: "Done.", 4_096), begun(), WorkLog()
    ends = []
    for prompt in [*before, "word " * 8_000, "second", "third"]:
        [end] = of(await turn(room_for(model, [], log=log), conversation, prompt), "turn_finished")
        ends.append(end.reason)
    assert ends == ["done"] * len(before) + ["context_full", "done", "done"]
    said = [one for one in model.requests[-1].messages if one["role"] == "user"]
    assert "word word" in said[0]["content"]
    assert [one["content"].rpartition("\n")[2] for one in said[-2:]] == ["second", "third"]


async def test_by_hand_nothing_is_lost_where_no_request_for_a_summary_fits():
    conversation = begun()
    services = room_for(WindowedModel(lambda _: "word " * 500, 4_096), [])
    await turn(services, conversation)
    before = list(conversation.messages)
    assert services.compactor is not None
    by_hand = services.compactor.compact(conversation, instruction="word " * 20_000, by_hand=True)
    [done] = of([event async for event in by_hand], "compaction_finished")
    assert done.detail == "no request for a summary fits"
    assert conversation.messages == before


async def test_the_tools_are_counted_where_no_server_has_said_yet_what_they_take():
    async def count_request(messages: Sequence[Message]) -> int:
        assert messages == [SystemMessage("Be brief."), UserMessage("")]
        return 1_234

    model = WindowedModel(lambda _: "Done.", 4_096)
    services = room_for(model, [reading([])], count_request=count_request)
    [end] = of(await turn(services, begun(), "word " * 4_000), "turn_finished")
    assert "the system text with the tools (1234 tokens)" in end.detail


async def test_tools_count_in_a_conversation_that_goes_on_although_no_first_reply_has_told_them():
    asked: list[Sequence[Message]] = []

    async def count_request(messages: Sequence[Message]) -> int:
        asked.append(messages)
        return TOOLS_TOKENS + len(tokenize(render_prompt({"messages": to_wire(messages)})))

    model = WindowedModel(lambda n: calling(n, "read", count=n) if n < 6 else "Read.", 4_096)
    earlier = begun()
    for number in range(10):
        earlier.messages += [UserMessage(f"Page {number}?"), AssistantMessage("word " * 150)]
    services = room_for(model, [reading([page(n, 2_000) for n in range(6)])], count_request=count_request)
    events = await turn(services, earlier)
    hold(model, events)
    assert (of(events, "turn_finished")[0].reason, model.refused) == ("done", 0)
    assert asked == [[SystemMessage("Be brief."), UserMessage("")]]
    first, *_ = of(events, "compaction_finished")
    following = model.requests[model.requests.index(model.summaries[0]) + 1]
    assert first.after == pytest.approx(following.prompt, rel=0.05)


async def test_a_reply_that_meets_the_end_of_the_window_is_asked_for_again_with_room():
    pages = [page(number, 3_600) for number in range(4)]
    long = "word " * 800

    def answer(number: int) -> AssistantMessage | str:
        return calling(number, "read", count=number) if number < 4 else long

    model = WindowedModel(answer, 8_192)
    events = await turn(room_for(model, [reading(pages)]), begun())
    hold(model, events)
    assert of(events, "turn_finished")[0].answer == long
    assert len(model.summaries) == 1


async def test_a_server_with_less_than_it_promised_is_believed_and_the_turn_goes_on():
    pages = [page(number, 6_000) for number in range(12)]
    model = WindowedModel(
        lambda n: calling(n, "read", count=n) if n < 12 else "Done.", 32_768, real_window=16_384
    )
    events = await turn(room_for(model, [reading(pages)]), begun())
    assert of(events, "turn_finished")[0].reason == "done"
    assert model.refused == 1
    assert [one.cause for one in of(events, "prefix_broken")] == ["compaction"] * len(model.summaries)


class Shrinking(WindowedModel):
    """Has less room than it says when it refuses a prompt for the first time."""

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, offer: Offer
    ) -> AsyncIterator[ModelItem]:
        was_refused = self.refused > 0
        async for item in super().generate(messages, max_tokens=max_tokens, offer=offer):
            yield item
        if self.refused and not was_refused:
            self._real = self._real * 2 // 3


async def test_a_server_that_refuses_also_what_was_summed_up_gets_no_second_summary():
    pages = [page(number, 6_000) for number in range(12)]
    model = Shrinking(
        lambda n: calling(n, "read", count=n) if n < 12 else "Done.", 32_768, real_window=16_384
    )
    events = await turn(room_for(model, [reading(pages)]), begun())
    assert model.refused > 1
    assert all(steps_between_compactions(events))
    assert of(events, "turn_finished")[0].reason == "done"


async def test_a_reply_too_long_for_what_was_summed_up_gets_no_second_summary():
    pages = [page(number, 3_600) for number in range(4)]

    def answer(number: int) -> AssistantMessage | str:
        return calling(number, "read", count=number) if number < 4 else "word " * 8_000

    events = await turn(room_for(WindowedModel(answer, 8_192), [reading(pages)], 8_192), begun())
    assert of(events, "compaction_started")
    assert all(steps_between_compactions(events))
    assert of(events, "turn_finished")[0].reason == "gave_up"


@pytest.mark.parametrize(
    "notes", ["", calling(1, "read", count=0), AssistantMessage("", "I think and think.")]
)
async def test_without_notes_the_record_has_to_do(notes: AssistantMessage | str):
    pages = [page(number, 8_000) for number in range(12)]

    def answer(number: int) -> AssistantMessage | str:
        return calling(number, "read", text=f"Step {number}.", count=number) if number < 12 else "Done."

    model = WindowedModel(answer, 32_768, notes=notes)
    events = await turn(room_for(model, [reading(pages)]), begun())
    assert of(events, "turn_finished")[0].reason == "done"
    summary = of(events, "compaction_finished")[0].summary
    assert "Step 4." in summary


async def test_the_record_tells_what_was_changed_and_what_fails():
    async def edit(params: Any, _: Any) -> ToolResult:
        return ToolResult("x" * 6_000, diffs=(FileDiff(f"src/{params.count}.py", "old", "new"),))

    tools = [FakeTool("edit", edit, access="write")]
    model = WindowedModel(lambda n: calling(n, "edit", path="src", count=n % 2) if n < 9 else "Done.", 16_384)
    log = WorkLog()
    events = await turn(room_for(model, tools, log=log, verifier=FakeCheck(False, True)), begun())
    summary = of(events, "compaction_finished")[0].summary
    assert "src/0.py (edited" in summary
    assert "The check `make test` passes." in summary
    assert summary.index("Files changed") < summary.index("Notes:\nDecided: to go on.")


async def test_a_cue_is_the_last_line_only_where_nothing_follows_the_summary():
    class Guide:
        def observe(self, event: Event) -> None:
            return

        def offer(self) -> Offer:
            return Offer()

        def cue(self) -> str:
            return "Write a.py now."

    pages = [page(number, 8_000) for number in range(12)]
    model = WindowedModel(lambda n: calling(n, "read", count=n) if n < 12 else "Done.", 32_768)
    conversation = begun()
    services = room_for(model, [reading(pages)], guide=Guide())
    summaries = [one.summary for one in of(await turn(services, conversation), "compaction_finished")]
    assert services.compactor is not None
    by_hand = services.compactor.compact(conversation, by_hand=True, cue="Write a.py now.")
    summaries += [one.summary for one in of([event async for event in by_hand], "compaction_finished")]
    assert ["Write a.py now." in one for one in summaries] == [False, True]


texts = st.sampled_from(["word ", "漢字", "0f:9;", "a b c d ", "x" * 40 + " "])


@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    window=st.sampled_from(WINDOWS[:3]),
    sizes=st.lists(st.integers(0, 20_000), min_size=5, max_size=20),
    alphabet=texts,
    calls=st.integers(1, 3),
    spoken=st.integers(0, 600),
    thought=st.integers(0, 300),
    system=st.integers(0, 500),
    counts=st.booleans(),
)
def test_any_session_stays_within_its_window(
    window: int,
    sizes: list[int],
    alphabet: str,
    calls: int,
    spoken: int,
    thought: int,
    system: int,
    counts: bool,
):
    pages = [page(number, size, alphabet) for number, size in enumerate(sizes)]

    def answer(number: int) -> AssistantMessage | str:
        if number >= len(pages):
            return "Done."
        return calling(
            number, *["read"] * calls, text="word " * spoken, reasoning="so " * thought, count=number
        )

    model = WindowedModel(answer, window)
    count: Callable[[str], Any] | None = model.count if counts else None
    conversation = begun("Be brief. " * system)
    services = room_for(model, [reading(pages)], count=count)
    events = asyncio.run(turn(services, conversation))
    end = of(events, "turn_finished")[0]
    assert end.reason in ("done", "context_full", "gave_up")
    hold(model, events) if counts else None
    ids = [
        call.id
        for one in conversation.messages
        if isinstance(one, AssistantMessage)
        for call in one.tool_calls
    ]
    assert ids == [one.call_id for one in conversation.messages if isinstance(one, ToolMessage)]
