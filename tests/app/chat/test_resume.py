"""Sessions that go on: after an end in order, after a kill, and as a copy."""

import asyncio
import json
import os
import sys
from datetime import date
from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.core.events import AssistantReplied, ToolFinished, TurnStarted, UserMessageAdded, to_record
from agent.resources import state_folder
from agent.session.store import SessionStore
from tests.app.talk import extends, messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import Call, Step, call

ROOT = Path(__file__).parents[3]
_SHOWN = ("user_message", "tool_finished", "turn_finished")
KILLED = """
import asyncio, os, sys
from pathlib import Path
from agent.app.chat.interactive import open_session
from tests.app.talk import Talk, settings_with
from agent.app.servers.serving import Serving
from agent.server.profile import Profile

async def main():
    profile = Profile.model_validate({"name": "one", "engine": "remote", "url": sys.argv[2],
                                      "tools": {"protocol": "native"}})
    session = await open_session(Path(sys.argv[1]), loaded=settings_with(mode="auto", allow=("shell",)),
                                 serve=lambda loaded: Serving(profile, loaded, "none"))
    talk = Talk(session)
    watching = asyncio.create_task(talk.watch())
    await talk.turn("first")
    session.prompt("second")
    await talk.until("tool_output")
    print("now", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_resumed_session_goes_on_byte_for_byte(scripted_server: StartServer, work: Path):
    (work / "a.txt").write_text("one\n", "utf-8")
    odd = Step(reasoning="hm", text="I look.", tool_calls=(Call("read", '{ "path":"a.txt" }'),))
    server = scripted_server(odd, "It says one.", "Bye.")
    async with talking(work, server) as talk:
        await talk.turn("What is in a.txt?")
        first = talk.session.facts.session_id
    async with talking(work, server, resume="last") as talk:
        await talk.turn("Thanks")
        assert talk.session.facts.session_id == first
        assert not talk.of("prefix_broken")
    requests = messages_of(server)
    assert extends(requests[1], requests[2])
    assert server.chats[2].cached_tokens > server.chats[1].prompt_tokens


async def test_calls_of_a_resumed_session_have_ids_of_their_own(scripted_server: StartServer, work: Path):
    bound = call("glob", pattern="*")
    server = scripted_server(bound, call("finish", answer="Done."), bound, call("finish", answer="Again."))
    async with talking(work, server, protocol="constrained") as talk:
        await talk.turn("one")
    async with talking(work, server, protocol="constrained", resume="last") as talk:
        await talk.turn("two")
        history = await talk.session.command("history", {})
    ids = [event.call_id for event in history if event.type == "tool_started"]
    assert len(ids) == len(set(ids)) == 2
    assert extends(*messages_of(server)[1:3])


async def test_the_old_conversation_can_be_drawn_again(scripted_server: StartServer, work: Path):
    server = scripted_server(call("write", path="a", content="1\n"), "Done.")
    async with talking(work, server, mode="accept-edits") as talk:
        await talk.turn("Write")
        shown = [event for event in talk.seen if event.type in _SHOWN]
    async with talking(work, server, resume="last") as talk:
        again = await talk.session.command("history", {})
        turns = await talk.session.command("turns", {})
    assert [one for one in again if one.type in _SHOWN] == shown
    assert [(row.number, row.prompt, row.reason, len(row.steps), row.tool_calls) for row in turns] == [
        (1, "Write", "done", 2, 1)
    ]


async def test_a_killed_session_can_be_resumed(scripted_server: StartServer, work: Path):
    script = [
        Step(text="Hello."),
        Step(tool_calls=(Call("shell", {"command": "echo go; sleep 600"}), Call("glob", {"pattern": "*"}))),
        Step(text="I see."),
    ]
    server = scripted_server(*script)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        KILLED,
        str(work),
        server.url,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"now\n"
    process.kill()
    await process.wait()
    async with talking(work, server, resume="last") as talk:
        assert (await talk.turn("third")).answer == "I see."
    last_of_the_killed, first_after = messages_of(server)[1:3]
    assert extends(last_of_the_killed, first_after)
    assert [one["role"] for one in first_after[-4:]] == ["assistant", "tool", "tool", "user"]
    assert all("Interrupted" in one["content"] for one in first_after[-3:-1])


async def test_a_session_that_was_killed_before_the_model_had_its_first_message_is_the_newest_one(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Hello.", "Yes.")
    async with talking(work, server) as talk:
        await talk.turn("an older conversation")
    store = SessionStore.create(state_folder(), work, profile="one", task="", kind="chat")
    store.append({"type": "asked", "text": "build the\nlighthouse"})
    store.close()
    async with talking(work, server, resume="last") as talk:
        assert talk.session.facts.session_id == store.id
        notice = await talk.until("notice")
        assert notice.text == "the model was never told: build the lighthouse (Up brings it back)"
        await talk.turn("go on")
    assert "an older conversation" not in str(messages_of(server)[-1])


async def test_a_fork_leaves_the_old_session_alone(scripted_server: StartServer, work: Path, homes: Path):
    server = scripted_server("One.", "Two.")
    async with talking(work, server) as talk:
        await talk.turn("one")
        first = talk.session.facts.session_id
        async with talking(work, server, resume=first, fork=True) as copy:
            await copy.turn("two")
            assert copy.session.facts.session_id != first
    assert extends(*messages_of(server))
    [old] = (homes / "state").glob(f"sessions/*/{first}/events.jsonl")
    assert "two" not in [json.loads(line).get("text") for line in old.read_text("utf-8").splitlines()]


async def test_a_session_that_is_open_elsewhere_is_not_resumed(scripted_server: StartServer, work: Path):
    server = scripted_server("One.")
    async with talking(work, server) as talk:
        await talk.turn("one")
        with pytest.raises(UsageError, match="open in another program"):
            async with talking(work, server, resume=talk.session.facts.session_id):
                pass


async def test_there_has_to_be_a_session_to_resume(scripted_server: StartServer, work: Path):
    with pytest.raises(UsageError, match="no earlier session"):
        async with talking(work, scripted_server(), resume="last"):
            pass


async def test_a_run_that_nobody_watched_can_be_talked_about(
    scripted_server: StartServer, work: Path, homes: Path
):
    with SessionStore.create(homes / "state", work, task="Do it") as store:
        for event in (
            TurnStarted(attempt=1),
            UserMessageAdded(text="Do it"),
            AssistantReplied(text="I look.", reasoning=""),
            ToolFinished(call_id="c", tool="read", outcome="ok", text="one", seconds=0.0),
            AssistantReplied(text="Done.", reasoning=""),
        ):
            store.append(to_record(event))
    server = scripted_server("It was easy.")
    async with talking(work, server, resume=store.id, today=lambda: date(2026, 2, 28)) as talk:
        assert (await talk.turn("How was it?")).answer == "It was easy."
    assert [one["content"] for one in messages_of(server)[0][1:]] == [
        "Do it",
        "I look.",
        "Result of read:\n```\none\n```",
        "Done.",
        "Today is 2026-02-28.\n\nHow was it?",
    ]
