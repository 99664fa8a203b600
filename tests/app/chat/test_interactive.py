"""A conversation with a person: turns in one history, texts that wait, and interruptions."""

import asyncio
import os
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from agent.app.chat.glance import RepoGlance
from agent.core.errors import UsageError
from agent.core.events import ServerState
from agent.session.catalogue import summarise
from tests.app.talk import Talk, extends, messages_of, records_in, talking
from tests.conftest import StartServer
from tests.fakes.script import call
from tests.fakes.scripted_server import ScriptedServer
from tests.patience import PATIENCE_SECONDS


def left_by_the_client(server: ScriptedServer, chat: int = 0) -> bool:
    request = server.chats[chat]
    return request.ended.wait(PATIENCE_SECONDS) and request.aborted


async def test_each_request_of_many_turns_extends_the_one_before(scripted_server: StartServer, work: Path):
    (work / "a.txt").write_text("one\n", "utf-8")
    server = scripted_server("Hello.", call("read", path="a.txt"), "It says one.", "Bye.")
    async with talking(work, server) as talk:
        for text in ("Hi", "What is in a.txt?", "Thanks"):
            assert (await talk.turn(text)).reason == "done"
    requests = messages_of(server)
    assert len(requests) == 4
    assert all(extends(one, other) for one, other in pairwise(requests))
    assert not talk.of("prefix_broken")


async def test_a_turn_begins_and_ends_with_its_own_events(scripted_server: StartServer, work: Path):
    async with talking(work, scripted_server("Hello.")) as talk:
        finished = await talk.turn("Hi")
        await asyncio.sleep(0)
    assert finished.answer == "Hello."
    kinds = [event.type for event in talk.seen]
    assert talk.kinds("turn_started", "user_message") == ["turn_started", "user_message"]
    assert kinds[-1] == "turn_finished"
    assert talk.of("context_status")[-1].window == 32_768
    assert talk.of("context_status")[-1].used > 0
    assert talk.of("session_started")[0].context_tokens == 32_768


async def test_a_prompt_may_be_typed_before_the_server_is_up(scripted_server: StartServer, work: Path):
    server = scripted_server("Hello.", loading=3)
    async with talking(work, server) as talk:
        talk.session.prompt("Hi")
        assert talk.session.facts.is_running
        await talk.until("turn_started")
        folder = talk.session._live.record.store.folder
        assert (summarise(folder).task, talk.of("user_message")) == ("Hi", [])
        finished = await talk.until("turn_finished")
        assert talk.session.facts.server == "ready"
    assert finished.answer == "Hello."
    assert "loading" in [event.state for event in talk.of("server_state") if isinstance(event, ServerState)]


async def test_a_server_that_nobody_stopped_is_said_to_start_from_the_first_moment(
    scripted_server: StartServer, work: Path
):
    async with talking(work, scripted_server("Hello.", loading=10**6)) as talk:
        assert talk.session.facts.server in ("starting", "loading")


async def test_a_prompt_that_is_cancelled_before_the_server_is_up_comes_back(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Hello.", loading=10**6)
    async with talking(work, server) as talk:
        talk.session.prompt("Hi")
        await talk.until("server_state")
        talk.session.cancel()
        assert (await talk.until("turn_finished")).reason == "cancelled"
        assert talk.session.take_back_queued() == ["Hi"]
    assert not server.chats


async def test_a_server_that_does_not_come_up_ends_the_turn(scripted_server: StartServer, work: Path):
    gone = scripted_server()
    gone.close()
    async with talking(work, gone) as talk:
        finished = await talk.turn("Hi")
        assert finished.reason == "server_failed"
        assert talk.session.facts.server == "failed"
        assert talk.session.take_back_queued() == ["Hi"]
        assert "no server answers" in talk.of("notice")[-1].text


async def test_steering_reaches_the_request_after_the_current_tool(scripted_server: StartServer, work: Path):
    server = scripted_server(call("shell", command="echo go; cat pipe"), "Understood.")
    os.mkfifo(work / "pipe")
    async with talking(work, server, mode="auto", allow=("shell",)) as talk:
        talk.session.prompt("Run it")
        await talk.until("tool_output")
        talk.session.steer("Use less words.")
        assert (await talk.until("queue_changed")).steering == ("Use less words.",)
        await asyncio.to_thread((work / "pipe").write_text, "end\n", "utf-8")
        assert (await talk.until("turn_finished")).answer == "Understood."
    assert [message["role"] for message in messages_of(server)[1]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert messages_of(server)[1][-1]["content"] == "Use less words."
    assert talk.of("queue_changed")[-1].steering == ()
    assert len(talk.of("turn_finished")) == 1


async def test_a_follow_up_becomes_a_turn_of_its_own(scripted_server: StartServer, work: Path):
    server = scripted_server(call("glob", pattern="*"), "First.", "Second.", "Third.")
    async with talking(work, server) as talk:
        talk.session.prompt("one")
        talk.session.follow_up("two")
        talk.session.prompt("three")
        await talk.until("turn_finished", 3)
    assert [event.answer for event in talk.of("turn_finished")] == ["First.", "Second.", "Third."]
    assert [event.text for event in talk.of("user_message")] == ["one", "two", "three"]


async def test_what_is_queued_can_be_taken_back(scripted_server: StartServer, work: Path):
    server = scripted_server({"fault": "silence"})
    async with talking(work, server) as talk:
        talk.session.prompt("one")
        await talk.until("step_started")
        talk.session.steer("two")
        talk.session.follow_up("three")
        assert talk.session.take_back_queued() == ["two", "three"]
        talk.session.cancel()
        await talk.until("turn_finished")
        assert not talk.session.facts.is_running
    assert len(talk.of("turn_started")) == 1


async def test_a_cancelled_turn_does_not_start_what_is_queued(scripted_server: StartServer, work: Path):
    server = scripted_server({"fault": "silence"}, "Now.", "Later.")
    async with talking(work, server) as talk:
        talk.session.prompt("one")
        await asyncio.to_thread(server.wait_for_chats, 1)
        talk.session.follow_up("later")
        talk.session.cancel()
        await talk.until("turn_finished")
        assert not talk.session.facts.is_running
        talk.session.prompt("now")
        await talk.until("turn_finished", 3)
    assert [event.text for event in talk.of("user_message")] == ["one", "now", "later"]


async def test_a_cancel_in_prefill_frees_the_slot_and_the_next_request_extends(
    scripted_server: StartServer, work: Path
):
    server = scripted_server({"fault": "silence"}, "Better.")
    async with talking(work, server) as talk:
        talk.session.prompt("one")
        await asyncio.to_thread(server.wait_for_chats, 1)
        talk.session.cancel()
        assert (await talk.until("turn_finished")).reason == "cancelled"
        assert await asyncio.to_thread(left_by_the_client, server)
        await talk.turn("two")
    assert extends(*messages_of(server))
    assert not talk.of("prefix_broken")


async def test_a_cancel_in_mid_stream_keeps_what_was_said(scripted_server: StartServer, work: Path):
    server = scripted_server({"fault": "endless", "text": "and so "}, "Better.")
    async with talking(work, server, reply_tokens=10**6) as talk:
        talk.session.prompt("one")
        await talk.until("text_delta")
        talk.session.cancel()
        await talk.until("turn_finished")
        assert await asyncio.to_thread(left_by_the_client, server)
        await talk.turn("two")
    first, second = messages_of(server)
    assert extends(first, second)
    said = second[2]["content"]  # as much as had come by then
    assert said
    assert ("and so " * 10**5).startswith(said)
    assert second[3] == {"role": "user", "content": "two"}


async def test_a_cancel_while_a_tool_runs_ends_it(scripted_server: StartServer, work: Path):
    server = scripted_server(call("shell", command="echo begun; sleep 600"), "Better.")
    async with talking(work, server, mode="auto", allow=("shell",)) as talk:
        talk.session.prompt("one")
        await talk.until("tool_output")
        talk.session.cancel()
        assert (await talk.until("turn_finished")).reason == "cancelled"
        assert talk.of("tool_finished")[0].outcome == "cancelled"
        await talk.turn("two")
    assert extends(*messages_of(server))


async def test_the_end_of_a_session_ends_the_turn(scripted_server: StartServer, work: Path):
    server = scripted_server({"fault": "silence"})
    async with talking(work, server) as talk:
        talk.session.prompt("one")
        await asyncio.to_thread(server.wait_for_chats, 1)
    assert talk.seen[-1].type == "turn_finished"
    assert await asyncio.to_thread(left_by_the_client, server)


async def test_a_session_in_which_nothing_happened_leaves_nothing(
    scripted_server: StartServer, work: Path, homes: Path
):
    async with talking(work, scripted_server()):
        pass
    assert not list((homes / "state").glob("sessions/*/*"))


async def test_events_are_recorded_without_deltas(scripted_server: StartServer, work: Path, homes: Path):
    async with talking(work, scripted_server("Hello.")) as talk:
        await talk.turn("Hi")
    kinds = [record["type"] for record in records_in(homes / "state")]
    assert {"session", "user_message", "assistant_message", "step_finished", "turn_finished"} <= set(kinds)
    assert not {"text_delta", "prefill", "queue_changed", "context_status"} & set(kinds)


async def test_changed_files_are_counted_after_a_tool(scripted_server: StartServer, work: Path):
    await (await asyncio.create_subprocess_exec("git", "init", "-qb", "main", str(work))).wait()
    server = scripted_server(call("write", path="new.py", content="x = 1\n"), "Done.")
    async with talking(work, server, mode="accept-edits") as talk:
        await talk.turn("Write it")
        await settled(talk)
        assert (talk.session.facts.branch, talk.session.facts.changed_files) == ("main", 1)


async def settled(talk: Talk) -> None:
    await talk.session._live.glance.settled()


async def test_after_a_failure_of_the_server_the_next_prompt_goes_on(
    scripted_server: StartServer, work: Path
):
    server = scripted_server({"fault": "drop", "text": "Half a", "times": 3}, "Whole.")
    async with talking(work, server) as talk:
        failed = await talk.turn("one")
        talk.session.prompt("two")
        assert (await talk.until("turn_finished", 2)).answer == "Whole."
    assert failed.reason == "server_failed"
    assert len(talk.of("session_started")) == 2
    assert messages_of(server)[-1][1]["content"].endswith("\n\none\n\ntwo")


async def test_blank_texts_are_no_turns(scripted_server: StartServer, work: Path):
    server = scripted_server()
    async with talking(work, server) as talk:
        talk.session.prompt("  \n")
        talk.session.steer("")
        assert not talk.session.facts.is_running
    assert not server.chats


async def test_a_closed_session_refuses_what_it_is_asked(scripted_server: StartServer, work: Path):
    async with talking(work, scripted_server()) as talk:
        pass
    with pytest.raises(UsageError, match="closed"):
        talk.session.prompt("Hi")
    with pytest.raises(UsageError, match="closed"):
        await talk.session.command("turns", {})


async def test_there_has_to_be_a_folder_to_work_in(scripted_server: StartServer, work: Path):
    with pytest.raises(UsageError, match="is not a folder"):
        async with talking(work / "gone", scripted_server()):
            pass


class BrokenGlance:
    """Stands in for a part with a mistake in it."""

    branch, changed_files = "", 0

    def refresh(self) -> None: ...

    async def settled(self) -> None:
        raise ValueError("a mistake")

    async def close(self) -> None: ...


async def test_a_mistake_of_the_program_gives_the_prompt_back_once(scripted_server: StartServer, work: Path):
    async with talking(work, scripted_server("Hello.")) as talk:
        glance, talk.session._live.glance = talk.session._live.glance, cast("RepoGlance", BrokenGlance())
        finished = await talk.turn("Hi")
        assert (finished.reason, finished.detail) == ("gave_up", "unexpected ValueError: a mistake")
        assert not talk.session.facts.is_running
        assert talk.of("queue_changed")[-1].follow_ups == ("Hi",)
        talk.session._live.glance = glance
        assert talk.session.take_back_queued() == ["Hi"]
        assert (await talk.turn("Hi")).answer == "Hello."
    assert len(talk.of("turn_finished")) == 2
