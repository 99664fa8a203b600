"""Long conversations made short."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.core.cancel import InterruptedRunError
from agent.core.errors import UsageError
from agent.core.leaving_out import CAUSE
from agent.core.trimming import LEFT_OUT
from tests.app.talk import extends, messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import Call, Step, StepLike, call

FINISHED = "compaction_finished"
LONG = "word " * 400


async def test_the_model_sums_up_on_the_prompt_that_the_server_has(scripted_server: StartServer, work: Path):
    server = scripted_server("One.", LONG, "Three.", "We counted.", "Four.")
    async with talking(work, server) as talk:
        for text in ("first", "second", "third"):
            await talk.turn(text)
        used = talk.session.facts.used_tokens
        done = await talk.session.command("compact", {"instruction": "the plan"})
        assert done.before == used
        assert done.summary.endswith("\nWe counted.")
        assert done.after == talk.session.facts.used_tokens < used
        await talk.turn("fourth")
    *_, last, asking, after = messages_of(server)
    assert extends(last, asking)
    assert server.chats[3].cached_tokens >= server.chats[2].prompt_tokens
    assert "Above all keep: the plan" in asking[-1]["content"]
    assert after[0] == last[0]
    assert after[1]["content"].startswith(last[1]["content"])
    assert "\n(Our earlier conversation, summed up:)\n" in after[1]["content"]
    assert "word for word:\n- second\nWhat you answered:\n- One.\n- word word" in after[1]["content"]
    assert "\nNotes:\nWe counted.\n\nthird" in after[1]["content"]
    assert [one["content"] for one in after[-2:]] == ["Three.", "fourth"]
    assert server.chats[4].cached_tokens >= 0.9 * server.chats[0].prompt_tokens
    assert [event.cause for event in talk.of("prefix_broken")] == ["compaction"]
    assert talk.kinds("compaction_started", FINISHED) == ["compaction_started", FINISHED]


async def test_results_of_earlier_turns_are_left_out_first_and_stay_in_the_session_file(
    scripted_server: StartServer, work: Path, homes: Path
):
    for number in range(3):
        (work / f"page{number}.txt").write_text(f"page {number} has many words\n" * 550, encoding="utf-8")
    turns = [(call("read", path=f"page{number}.txt"), "Read.") for number in range(3)]
    server = scripted_server(*(step for one in turns for step in one), "Fine.", "Still.", n_ctx=12_288)
    async with talking(work, server) as talk:
        for text in ("first", "second", "third", "fourth"):
            await talk.turn(text)
        assert [event.cause for event in talk.of("prefix_broken")] == [CAUSE]
        assert talk.of("compaction_started") == []
        assert 0 < talk.session.facts.used_tokens - server.chats[-1].prompt_tokens < 10
    asked = messages_of(server)
    assert [extends(before, after) for before, after in pairwise(asked)].count(False) == 1
    assert [one["content"] == LEFT_OUT for one in asked[-1] if one["role"] == "tool"] == [True, True, False]
    [events] = homes.glob("state/sessions/*/*/events.jsonl")
    assert events.read_text("utf-8").count("page 0 has many words") > 500
    async with talking(work, server, resume="last") as talk:
        await talk.turn("fifth")
        assert talk.of("prefix_broken") == []
    assert extends(*messages_of(server)[-2:])


async def test_a_resumed_session_goes_on_from_the_summary(scripted_server: StartServer, work: Path):
    server = scripted_server(LONG, "Two.", "Short.", "Three.", "Four.")
    async with talking(work, server) as talk:
        await talk.turn("first")
        await talk.turn("second")
        await talk.session.command("compact", {})
        await talk.turn("third")
    async with talking(work, server, resume="last") as talk:
        points = await talk.session.command("rewind_points", {})
        history = await talk.session.command("history", {})
        await talk.turn("fourth")
        await talk.session.command("rewind", {"to_turn": 3, "what": "chat"})
    assert extends(*messages_of(server)[-2:])
    assert [(one.turn, one.chat) for one in points] == [(1, True), (2, True), (3, True)]
    assert "first" in [event.text for event in history if event.type == "user_message"]


async def test_one_long_turn_is_summed_up_whole(scripted_server: StartServer, work: Path):
    server = scripted_server(call("glob", pattern="*"), LONG, "Short.", "Yes.")
    async with talking(work, server) as talk:
        await talk.turn("first")
        await talk.session.command("compact", {})
        await talk.turn("second")
    assert [one["role"] for one in messages_of(server)[-1]] == ["system", "user"]
    assert messages_of(server)[-1][1]["content"].endswith("Short.\n\nsecond")


async def test_a_bound_model_sums_up_in_its_closing_call(scripted_server: StartServer, work: Path):
    done = call("finish", answer=LONG)
    server = scripted_server(done, call("finish", answer="In short."), done)
    async with talking(work, server, protocol="constrained") as talk:
        await talk.turn("first")
        assert (await talk.session.command("compact", {})).summary.endswith("In short.")
        await talk.turn("second")
    assert "In short." in messages_of(server)[-1][1]["content"]


async def test_a_full_context_is_summed_up_before_the_next_turn(scripted_server: StartServer, work: Path):
    server = scripted_server("One.", "Short.", "Two.", n_ctx=9216)
    async with talking(work, server, reply_tokens=400) as talk:
        await talk.turn("first " * 2_000)
        assert (await talk.turn("second")).answer == "Two."
    assert talk.of("compaction_started")[0].automatic
    assert [one.cause for one in talk.of("prefix_broken")] == ["compaction"]
    assert messages_of(server)[-1][1]["content"].endswith("Short.\n\nsecond")


async def test_after_a_first_message_that_never_fitted_the_next_one_is_answered(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Fine.", n_ctx=4096)
    async with talking(work, server, reply_tokens=400) as talk:
        assert (await talk.turn("word " * 8_000)).reason == "context_full"
        assert server.chats == []
        assert (await talk.turn("second")).answer == "Fine."
    [asked] = messages_of(server)
    assert "characters left out" in asked[1]["content"]
    assert asked[1]["content"].endswith("second")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"fault": "http_500", "times": 3}, "the conversation stays as it is"),
        (call("read", path="x"), "no summary"),
    ],
)
async def test_without_a_summary_everything_stays(
    scripted_server: StartServer, work: Path, step: object, words: str
):
    server = scripted_server("One.", step, "Two.")
    async with talking(work, server) as talk:
        await talk.turn("first")
        with pytest.raises(UsageError, match=words):
            await talk.session.command("compact", {})
        await talk.turn("second")
    assert extends(messages_of(server)[0], messages_of(server)[-1])
    assert talk.of(FINISHED)[0].before == talk.of(FINISHED)[0].after


async def test_a_cancel_ends_it(scripted_server: StartServer, work: Path):
    server = scripted_server("One.", {"fault": "silence"}, "Two.")
    async with talking(work, server) as talk:
        await talk.turn("first")
        compacting = asyncio.ensure_future(talk.session.command("compact", {}))
        await asyncio.to_thread(server.wait_for_chats, 2)
        with pytest.raises(UsageError, match="has to wait"):
            await talk.session.command("undo", {})
        talk.session.cancel()
        with pytest.raises(InterruptedRunError):
            await compacting
        assert (await talk.turn("second")).answer == "Two."


async def test_there_has_to_be_something_to_sum_up(scripted_server: StartServer, work: Path):
    async with talking(work, scripted_server()) as talk:
        with pytest.raises(UsageError, match="nothing to sum up"):
            await talk.session.command("compact", {})


async def test_what_would_not_become_shorter_stays(scripted_server: StartServer, work: Path):
    server = scripted_server("One.", LONG)
    async with talking(work, server) as talk:
        await talk.turn("first")
        with pytest.raises(UsageError, match="no shorter"):
            await talk.session.command("compact", {})
    assert not talk.of("prefix_broken")


def reads_pages(work: Path, pages: int) -> Callable[[Mapping[str, Any]], StepLike]:
    """Says hello, then reads pages until there are no more; sums up when it is asked to."""
    for number in range(pages):
        lines = (f"page {number} line {line} says nothing" for line in range(130))
        (work / f"page{number}.txt").write_text("\n".join(lines), encoding="utf-8")
    steps = iter(["Hello.", *(Call("read", {"path": f"page{number}.txt"}) for number in range(pages))])

    def answer(body: Mapping[str, Any]) -> StepLike:
        if "Sum up our conversation" in body["messages"][-1]["content"]:
            return Step(text="Decided: to read on.", times=0)
        step = next(steps, "All read.")
        return Step(text=step, times=0) if isinstance(step, str) else Step(tool_calls=(step,), times=0)

    return answer


async def test_a_turn_that_fills_the_context_goes_on_from_a_summary(scripted_server: StartServer, work: Path):
    server = scripted_server(reads_pages(work, 6), n_ctx=12_288)
    async with talking(work, server) as talk:
        await talk.turn("first")
        end = await talk.turn("second: read all pages")
        [started] = talk.of("compaction_started")
        [finished] = talk.of(FINISHED)
        assert (end.reason, end.answer, started.automatic) == ("done", "All read.", True)
        assert finished.after <= 0.7 * finished.before
        known = "- second: read all pages\nWhat you answered:\n- Hello.\nFiles read: page0.txt"
        assert known in finished.summary
        assert finished.after in [event.used for event in talk.of("context_status")]
        assert [event.cause for event in talk.of("prefix_broken")] == ["compaction"]
        assert end.stats.decoded_tokens > finished.stats.decoded_tokens > 0
        await talk.turn("third")
    assert all(chat.prompt_tokens + chat.body["max_tokens"] <= 12_288 for chat in server.chats)
    assert extends(*messages_of(server)[-2:])


async def test_a_person_goes_back_to_before_what_was_summed_up(scripted_server: StartServer, work: Path):
    server = scripted_server(reads_pages(work, 6), n_ctx=12_288)
    async with talking(work, server) as talk:
        await talk.turn("first")
        await talk.turn("read all pages")
        assert talk.of(FINISHED)
        await talk.turn("third")
    async with talking(work, server, resume="last") as talk:
        await talk.session.command("rewind", {"to_turn": 2, "what": "chat"})
        await talk.turn("something else")
        await talk.session.command("rewind", {"to_turn": 4, "what": "chat"})
        await talk.turn("and again")
    first, *_, before, last = messages_of(server)
    for messages in (before, last):
        assert messages[:2] == first
        assert [one["role"] for one in messages] == ["system", "user", "assistant", "user"]
    assert last[-1]["content"].endswith("and again")


async def test_a_session_that_was_summed_up_in_a_turn_is_resumed_as_it_was(
    scripted_server: StartServer, work: Path
):
    server = scripted_server(reads_pages(work, 6), n_ctx=12_288)
    async with talking(work, server) as talk:
        await talk.turn("first")
        await talk.turn("read all pages")
    async with talking(work, server, resume="last") as talk:
        await talk.turn("third")
        await talk.session.command("compact", {})
        summary = talk.of(FINISHED)[-1].summary
    assert extends(*messages_of(server)[-3:-1])
    assert "read all pages" in summary
    assert "page5.txt" in summary
