"""Prompts of an editor: what it is told while a turn runs, what it is asked, and how the turn ends."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from tests.acp.editor import Editor, editing
from tests.conftest import StartServer
from tests.fakes.script import Step, call
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.timeout(180)


def begun(editor: Editor, session: str, text: str) -> "asyncio.Task[Any]":
    return asyncio.create_task(editor.say(session, text))


async def test_words_and_thoughts_are_streamed_before_the_prompt_is_answered(use: StartServer, work: Path):
    use(Step(text="Hello there.", reasoning="A greeting."))
    async with editing(work) as editor:
        session = await editor.begin(work)
        answer = await editor.say(session, "Hi")
        assert answer.stop_reason == "end_turn"
        assert answer.field_meta["agent"]["steps"] == 1
        assert editor.text() == "Hello there."
        assert editor.text("agent_thought_chunk") == "A greeting."
        assert editor.of("usage_update")[-1]["size"] == 32_768
        assert editor.order[-1] == "answer"


async def test_calls_have_kind_title_place_and_what_came_of_them(use: StartServer, work: Path):
    (work / "a.txt").write_text("one\ntwo\nthree\n", "utf-8")
    use(
        call("read", path="a.txt", start=2, lines=1),
        call("edit", path="a.txt", old="three", new="four"),
        call("shell", command="echo out; echo more"),
        call("read", path="missing.txt"),
        "Done.",
    )
    async with editing(work, "auto") as editor:
        session = await editor.begin(work)
        assert (await editor.say(session, "Go")).stop_reason == "end_turn"
        read, edit, shell, missing = editor.cards()
    path = str(work / "a.txt")
    assert (read["kind"], read["title"], read["status"]) == ("read", "Read a.txt:2-2", "completed")
    assert read["locations"] == [{"path": path, "line": 2}]
    assert "2\ttwo" in read["content"][0]["content"]["text"]
    assert (edit["kind"], edit["title"]) == ("edit", "Edit a.txt")
    assert edit["locations"] == [{"path": path, "line": 3}]
    assert edit["content"] == [
        {"type": "diff", "path": path, "oldText": "one\ntwo\nthree\n", "newText": "one\ntwo\nfour\n"}
    ]
    assert (shell["kind"], shell["title"]) == ("execute", "`echo out; echo more`")
    assert "out\nmore" in shell["content"][0]["content"]["text"]
    assert missing["status"] == "failed"
    assert "missing.txt" in missing["content"][0]["content"]["text"]


async def test_a_question_shows_the_parsed_commands_and_takes_once_and_no(use: StartServer, work: Path):
    use(
        call("shell", command="touch one && timeout 5 touch two"), call("shell", command="touch three"), "Ok."
    )
    async with editing(work) as editor:
        session = await editor.begin(work)
        turn = begun(editor, session, "Go")
        first = await editor.question()
        shown = [part.content.text for part in first.call.content or () if part.type == "content"]
        assert "touch one" in shown[-1]
        assert "touch two" in shown[-1]
        told = (first.call.field_meta or {})["agent"]
        assert (told["tool"], told["commands"][0]) == ("shell", "touch one")
        assert (first.call.kind, first.call.raw_input) == (
            "execute",
            {"command": "touch one && timeout 5 touch two"},
        )
        assert [option.kind for option in first.options] == [
            "allow_once",
            "allow_always",
            "allow_always",
            "reject_once",
        ]
        first.answer("once")
        (await editor.question(2)).answer("deny")
        await turn
        done, refused = editor.cards()
    assert (done["status"], refused["status"]) == ("completed", "failed")
    assert (work / "two").exists()
    assert not (work / "three").exists()


async def test_a_rule_that_is_allowed_for_good_is_kept_and_asked_no_more(
    use: StartServer, work: Path, tmp_path: Path
):
    use(*(call("shell", command="touch a") for _ in range(2)), "Ok.", call("shell", command="touch a"), "Ok.")
    async with editing(work) as editor:
        session = await editor.begin(work)
        turn = begun(editor, session, "Go")
        (await editor.question()).answer("always")
        await turn
        assert len(editor.client.questions) == 1
    async with editing(work) as another:
        await another.say(await another.begin(work), "Again")
        assert another.client.questions == []
        assert [card["status"] for card in another.cards()] == ["completed"]
    assert "touch" in (tmp_path / "config" / "config.toml").read_text("utf-8")


async def test_a_question_about_an_edit_shows_the_change_and_closing_it_is_a_no(use: StartServer, work: Path):
    (work / "a.txt").write_text("one\n", "utf-8")
    use(call("edit", path="a.txt", old="one", new="two"), "Ok.")
    async with editing(work) as editor:
        session = await editor.begin(work)
        turn = begun(editor, session, "Go")
        question = await editor.question()
        diffs = [part for part in question.call.content or () if part.type == "diff"]
        assert [(diff.old_text, diff.new_text) for diff in diffs] == [("one\n", "two\n")]
        assert [place.path for place in question.call.locations or ()] == [str(work / "a.txt")]
        assert question.call.raw_input == {"path": "a.txt", "old": "one", "new": "two"}
        question.answer("")
        await turn
    assert (work / "a.txt").read_text("utf-8") == "one\n"


async def test_a_mode_that_is_set_holds_and_is_told(use: StartServer, work: Path):
    use(call("write", path="a.txt", content="one\n"), "Ok.")
    async with editing(work) as editor:
        session = await editor.begin(work)
        await editor.agent.set_session_mode(session_id=session, mode_id="accept-edits")
        assert (await editor.until("current_mode_update"))["currentModeId"] == "accept-edits"
        await editor.say(session, "Go")
        assert editor.client.questions == []
        with pytest.raises(RequestError, match="no mode is called 'yolo'; there are plan, ask"):
            await editor.agent.set_session_mode(session_id=session, mode_id="yolo")
    assert (work / "a.txt").exists()


async def test_a_cancel_ends_the_prompt_frees_the_server_and_the_next_prompt_works(
    use: StartServer, work: Path
):
    server = use({"fault": "pings", "text": "again"}, "Here.")
    async with editing(work) as editor:
        session = await editor.begin(work)
        turn = begun(editor, session, "Go")
        await editor.until("agent_message_chunk")
        await editor.agent.cancel(session_id=session)
        # Editors send the next prompt without waiting for the end of the first.
        following = begun(editor, session, "Still there?")
        assert (await turn).stop_reason == "cancelled"
        assert (await following).stop_reason == "end_turn"
        assert editor.text().endswith("Here.")
    assert server.chats[0].ended.wait(PATIENCE_SECONDS)
    assert server.chats[0].aborted


async def test_a_cancel_takes_an_open_question_back(use: StartServer, work: Path):
    use(call("shell", command="touch a"), "Ok.")
    async with editing(work) as editor:
        session = await editor.begin(work)
        turn = begun(editor, session, "Go")
        question = await editor.question()
        await editor.agent.cancel(session_id=session)
        question.answer("")
        assert (await turn).stop_reason == "cancelled"
        assert [card["status"] for card in editor.cards()] == ["failed"]
    assert not (work / "a").exists()


async def test_a_second_prompt_of_a_session_is_refused_while_one_runs(use: StartServer, work: Path):
    use({"fault": "pings", "text": "again"})
    async with editing(work) as editor:
        session = await editor.begin(work)
        turn = begun(editor, session, "Go")
        await editor.until("agent_message_chunk")
        with pytest.raises(RequestError, match="still being worked on"):
            await editor.say(session, "And this")
        await editor.agent.cancel(session_id=session)
        await turn


async def test_a_server_that_is_not_there_is_one_line(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_SERVER_URL", "http://127.0.0.1:9")
    async with editing(work) as editor:
        session = await editor.begin(work)
        with pytest.raises(RequestError, match=r"127\.0\.0\.1:9") as refused:
            await editor.say(session, "Hi")
        assert "\n" not in str(refused.value)


async def test_a_server_that_takes_long_to_start_is_a_card_that_ends(use: StartServer, work: Path):
    use("Hello.", loading=3)
    async with editing(work) as editor:
        session = await editor.begin(work)
        assert (await editor.say(session, "Hi")).stop_reason == "end_turn"
        cards = editor.cards()
    assert [card["status"] for card in cards] in ([], ["completed"])
    assert all(card["title"].startswith("Model server: ") for card in cards)


async def test_limits_are_named_and_end_the_turn_as_the_protocol_says(
    use: StartServer, work: Path, monkeypatch: pytest.MonkeyPatch
):
    (work / "a.txt").write_text("one\n", "utf-8")
    use(*(call("read", path="a.txt", start=1, lines=n) for n in range(1, 5)))
    monkeypatch.setenv("AGENT_LIMITS_MAX_STEPS", "2")
    async with editing(work) as editor:
        session = await editor.begin(work)
        assert (await editor.say(session, "Go")).stop_reason == "max_turn_requests"
        assert "2 steps" in editor.cards()[-1]["title"]


async def test_commands_are_offered_and_answer_in_the_conversation(use: StartServer, work: Path):
    (work / ".agent" / "commands").mkdir(parents=True)
    (work / ".agent" / "commands" / "greet.md").write_text("Say hello to $1.\n", "utf-8")
    server = use(call("write", path="a.txt", content="one\n"), "Written.", "Hello Ada.")
    async with editing(work, "auto") as editor:
        session = await editor.begin(work)
        offered = await editor.until("available_commands_update")
        names = {one["name"] for one in offered["availableCommands"]}
        assert names >= {"compact", "undo", "model", "init", "greet"}
        await editor.say(session, "Write")
        await editor.say(session, "/diff")
        assert "+one" in editor.text()
        await editor.say(session, "/undo")
        assert not (work / "a.txt").exists()
        await editor.say(session, "/nothing")
        assert "there is no command /nothing" in editor.text()
        assert (await editor.say(session, "/greet Ada")).stop_reason == "end_turn"
        assert editor.text().endswith("Hello Ada.")
        assert any("words of this repository" in card["title"] for card in editor.cards())
    sent = server.chats[-1].body["messages"][-1]["content"]
    assert "Say hello to Ada." in sent
    assert "From this repository, not from the user." in sent
