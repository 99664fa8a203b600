"""Going back to before a turn of an open session."""

import asyncio
from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.core.events import ToolFinished, TurnStarted, UserMessageAdded, to_record
from agent.core.tool import FileDiff
from agent.session.ledger import SessionLedger
from agent.session.store import SessionStore
from tests.app.talk import extends, messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import call

SCRIPT = (
    call("write", path="a.txt", content="1\n"),
    "One.",
    call("write", path="b.txt", content="2\n"),
    call("edit", path="a.txt", old="1", new="2"),
    "Two.",
)


async def test_turns_are_listed_with_what_they_changed(scripted_server: StartServer, work: Path):
    async with talking(work, scripted_server(*SCRIPT), mode="auto") as talk:
        await talk.turn("\nfirst\nmore of it")
        await talk.turn("second")
        points = await talk.session.command("rewind_points", {})
    assert [(one.turn, one.first_line, one.changed) for one in points] == [
        (1, "first", ("a.txt",)),
        (2, "second", ("b.txt", "a.txt")),
    ]
    assert 0 < points[0].started <= points[1].started


async def test_both_go_back(scripted_server: StartServer, work: Path):
    server = scripted_server(*SCRIPT, "Again.")
    async with talking(work, server, mode="auto") as talk:
        await talk.turn("first")
        used = talk.session.facts.used_tokens
        await talk.turn("second")
        result = await talk.session.command("rewind", {"to_turn": 2})
        assert (result.prompt, result.restored, result.deleted) == ("second", ("a.txt",), ("b.txt",))
        assert (work / "a.txt").read_text("utf-8") == "1\n"
        assert talk.session.facts.used_tokens == used
        [point] = await talk.session.command("rewind_points", {})
        assert point.turn == 1
        history = await talk.session.command("history", {})
        await talk.turn("another second")
    assert [event.text for event in history if event.type == "user_message"] == ["first"]
    assert history[-1].type in ("prefix_broken", "rewound")
    before, after = messages_of(server)[1], messages_of(server)[-1]
    assert extends(before, after)
    assert [one["content"] for one in after[len(before) :]] == ["One.", "another second"]
    assert [event.cause for event in talk.of("prefix_broken")] == [
        "the conversation went back to before turn 2"
    ]


async def test_the_chat_alone_goes_back_and_the_model_is_told_of_the_files(
    scripted_server: StartServer, work: Path
):
    server = scripted_server(*SCRIPT, "Again.")
    async with talking(work, server, mode="auto") as talk:
        await talk.turn("first")
        await talk.turn("second")
        await talk.session.command("rewind", {"to_turn": 2, "what": "chat"})
        await talk.turn("again")
    assert (work / "a.txt").read_text("utf-8") == "2\n"
    assert messages_of(server)[-1][-1]["content"] == (
        "(Files that may differ from what you have seen: b.txt, a.txt.)\n\nagain"
    )


async def test_files_alone_go_back_and_can_be_brought_back(scripted_server: StartServer, work: Path):
    server = scripted_server(*SCRIPT, "I see.")
    async with talking(work, server, mode="auto") as talk:
        await talk.turn("first")
        await talk.turn("second")
        (work / "b.txt").write_text("mine\n", "utf-8")
        result = await talk.session.command("rewind", {"to_turn": 1, "what": "files"})
        assert result.deleted == ("a.txt",)
        assert result.left == (("b.txt", "somebody else changed it since"),)
        assert (work / "b.txt").read_text("utf-8") == "mine\n"
        await talk.session.command("redo", {})
        assert (work / "a.txt").read_text("utf-8") == "2\n"
        await talk.turn("And?")
    assert extends(*messages_of(server)[-2:])


async def test_a_resumed_session_stays_where_it_went_back_to(scripted_server: StartServer, work: Path):
    server = scripted_server(*SCRIPT, "Again.", "Third.")
    async with talking(work, server, mode="auto") as talk:
        await talk.turn("first")
        await talk.turn("second")
        await talk.session.command("rewind", {"to_turn": 2})
    async with talking(work, server, mode="auto", resume="last") as talk:
        assert [one.turn for one in await talk.session.command("rewind_points", {})] == [1]
        await talk.turn("again")
        assert [one.turn for one in await talk.session.command("rewind_points", {})] == [1, 3]
        assert not talk.of("prefix_broken")
        await talk.session.command("rewind", {"to_turn": 1})
        assert await talk.session.command("rewind_points", {}) == []
        assert not (work / "a.txt").exists()
    async with talking(work, server, mode="auto", resume="last") as talk:
        await talk.turn("all anew")
    assert [one["role"] for one in messages_of(server)[-1]] == ["system", "user"]
    assert messages_of(server)[-1][1]["content"].endswith("all anew")
    assert "second" not in str(messages_of(server)[-2])


async def test_a_prompt_waits_until_going_back_is_done(scripted_server: StartServer, work: Path):
    server = scripted_server(*SCRIPT, "Again.")
    async with talking(work, server, mode="auto") as talk:
        await talk.turn("first")
        await talk.turn("second")
        going_back = asyncio.ensure_future(talk.session.command("rewind", {"to_turn": 2}))
        for _ in range(3):  # until it has begun
            await asyncio.sleep(0)
        await talk.turn("third")
        await going_back
        points = await talk.session.command("rewind_points", {})
    assert [one.turn for one in points] == [1, 3]
    assert "second" not in str(messages_of(server)[-1])
    assert talk.kinds("rewound", "turn_started")[-2:] == ["rewound", "turn_started"]


async def test_what_an_unwatched_run_changed_can_be_put_back(
    scripted_server: StartServer, work: Path, homes: Path
):
    with SessionStore.create(homes / "state", work, task="Do it") as store:
        ledger = SessionLedger(work, store.folder)
        ledger.before_change(work / "a.txt")
        (work / "a.txt").write_text("1", "utf-8")
        ledger.record(work / "a.txt")
        ledger.close()
        change = ToolFinished(
            call_id="c", tool="write", outcome="ok", text="", seconds=0, diffs=(FileDiff("a.txt", None, "1"),)
        )
        for event in (TurnStarted(attempt=1), UserMessageAdded(text="Do it"), change):
            store.append(to_record(event))
    async with talking(work, scripted_server(), resume=store.id) as talk:
        [point] = await talk.session.command("rewind_points", {})
        assert (point.turn, point.chat, point.changed) == (1, False, ("a.txt",))
        await talk.session.command("rewind", {"to_turn": 1, "what": "files"})
    assert not (work / "a.txt").exists()


async def test_a_turn_that_never_reached_the_model_is_no_point(scripted_server: StartServer, work: Path):
    server = scripted_server("One.", loading=10**6)
    async with talking(work, server) as talk:
        talk.session.prompt("first")
        await talk.until("server_state")
        talk.session.cancel()
        await talk.until("turn_finished")
        assert await talk.session.command("rewind_points", {}) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "no turn None"),
        ({"to_turn": 7}, "no turn 7"),
        ({"to_turn": "1"}, "no turn '1'"),
        ({"to_turn": 1, "what": "all"}, "cannot go back in 'all'"),
    ],
)
async def test_wrong_wishes_are_explained(
    scripted_server: StartServer, work: Path, arguments: dict[str, object], words: str
):
    async with talking(work, scripted_server("One.")) as talk:
        await talk.turn("first")
        with pytest.raises(UsageError, match=words):
            await talk.session.command("rewind", arguments)


async def test_it_waits_for_no_turn(scripted_server: StartServer, work: Path):
    async with talking(work, scripted_server("One.", {"fault": "silence"})) as talk:
        await talk.turn("first")
        talk.session.prompt("second")
        with pytest.raises(UsageError, match="has to wait"):
            await talk.session.command("rewind", {"to_turn": 1})
