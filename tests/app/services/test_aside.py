"""A question beside the work."""

import asyncio
import json
from pathlib import Path

import pytest

from agent.core.errors import ServerError, UsageError
from tests.app.talk import extends, messages_of, records_in, talking
from tests.conftest import StartServer


async def test_the_answer_is_shown_and_neither_it_nor_the_question_stays_in_the_conversation(
    scripted_server: StartServer, work: Path, homes: Path
):
    server = scripted_server("Hello.", "It is Tuesday.", "And on.")
    async with talking(work, server) as talk:
        await talk.turn("hi")
        aside = await talk.session.command("btw", {"question": "What day is {it}?"})
        await talk.turn("more")
    assert aside.answer == "It is Tuesday."
    first, beside, second = messages_of(server)
    assert extends(first, beside)
    assert beside[-2]["content"] == "Hello."
    assert "What day is {it}?" in beside[-1]["content"]
    assert [one["content"] for one in second[len(first) :]] == ["Hello.", "more"]
    assert [chat.body["tools"] for chat in server.chats[1:]] == [server.chats[0].body["tools"]] * 2
    told = [one for one in records_in(homes / "state") if one["type"] == "tool_finished"]
    assert [(one["tool"], one["text"], one["outcome"]) for one in told] == [("btw", "It is Tuesday.", "ok")]


async def test_the_answer_of_a_bound_model_is_taken_out_of_its_call(scripted_server: StartServer, work: Path):
    finish = [json.dumps({"tool": "finish", "answer": text}) for text in ("Hello.", "Beside.")]
    server = scripted_server(*finish)
    async with talking(work, server, protocol="constrained") as talk:
        await talk.turn("hi")
        assert (await talk.session.command("btw", {"question": "And?"})).answer == "Beside."


async def test_what_a_person_ran_since_is_known_to_the_answer(scripted_server: StartServer, work: Path):
    server = scripted_server("Hello.", "It printed 42.")
    async with talking(work, server) as talk:
        await talk.turn("hi")
        await talk.session.command("shell", {"command": "echo 42"})
        await talk.session.command("btw", {"question": "What did it print?"})
    assert "I ran `echo 42` myself" in messages_of(server)[1][-1]["content"]


async def test_a_call_instead_of_an_answer_is_not_run(scripted_server: StartServer, work: Path):
    call = {"tool_calls": [{"name": "write", "arguments": {"path": "new.txt", "content": "x"}}]}
    server = scripted_server("Hello.", call)
    async with talking(work, server) as talk:
        await talk.turn("hi")
        with pytest.raises(ServerError, match="went on with the work"):
            await talk.session.command("btw", {"question": "And?"})
        outcomes = [event.outcome for event in talk.of("tool_finished")]
    assert outcomes == ["error"]
    assert not (work / "new.txt").exists()


async def test_without_a_conversation_there_is_nothing_to_ask_beside(
    scripted_server: StartServer, work: Path
):
    async with talking(work, scripted_server()) as talk:
        with pytest.raises(UsageError, match="no conversation yet"):
            await talk.session.command("btw", {"question": "And?"})
        assert not talk.of("tool_started")


async def test_the_answer_is_bounded_to_what_the_window_has_left_and_nothing_is_asked_without_room(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Hello.", "So.", n_ctx=4096)
    async with talking(work, server) as talk:
        await talk.turn("hi")
        conversation = talk.session._live.record.conversation
        conversation.tokens = 3500
        await talk.session.command("btw", {"question": "And?"})
        conversation.tokens = 4000
        with pytest.raises(UsageError, match="no room for a question"):
            await talk.session.command("btw", {"question": "And?"})
    [beside] = server.chats[1:]
    assert 64 <= beside.body["max_tokens"] <= 4096 - 3500


async def test_an_interrupt_ends_it_and_the_conversation_goes_on(scripted_server: StartServer, work: Path):
    server = scripted_server("Hello.", {"text": "slow", "fault": "pings"}, "And on.")
    async with talking(work, server) as talk:
        await talk.turn("hi")
        asking = asyncio.create_task(talk.session.command("btw", {"question": "And?"}))
        await asyncio.to_thread(server.wait_for_chats, 2)
        talk.session.cancel()
        assert (await asking).answer == ""
        assert [event.outcome for event in talk.of("tool_finished")] == ["cancelled"]
        assert (await talk.turn("more")).answer == "And on."


async def test_the_context_holds_no_more_after_a_question_beside_the_work_than_before(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Hello.", "It is Tuesday.", {"text": "slow", "fault": "pings"})
    async with talking(work, server) as talk:
        await talk.turn("hi")
        before = talk.session.facts.used_tokens
        await talk.session.command("btw", {"question": "What day is it?"})
        assert talk.session.facts.used_tokens == before > 0
        # What the server keeps of the session is found by how much its slot holds.
        assert talk.session._live.slot_tokens > before
        asking = asyncio.create_task(talk.session.command("btw", {"question": "And?"}))
        await asyncio.to_thread(server.wait_for_chats, 3)
        talk.session.cancel()
        await asking
        assert (talk.session.facts.used_tokens, talk.session._live.slot_tokens) == (before, 0)
        assert talk.session._live.is_left_off


async def test_a_server_that_fails_is_told_and_leaves_the_conversation_as_it_was(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Hello.", *[{"fault": "http_500"}] * 9)
    async with talking(work, server) as talk:
        await talk.turn("hi")
        before = list(talk.session._live.record.conversation.messages)
        with pytest.raises(ServerError):
            await talk.session.command("btw", {"question": "And?"})
        assert talk.session._live.record.conversation.messages == before
