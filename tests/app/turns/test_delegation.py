"""Sub-agents in a live session: what the model is told, what people see, what they may do."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.app.turns.delegation import offers_subagents
from agent.core.handle import Answer
from agent.server.profile import Profile
from tests.app.talk import Talk, extends, messages_of, settings_with, talking
from tests.conftest import StartServer
from tests.fakes.script import Step, call
from tests.fakes.scripted_server import ScriptedServer
from tests.patience import PATIENCE_SECONDS

TASK = call("task", prompt="Where is the parser?")
EDIT = call("task", prompt="Write it.", edit=True)


def tools_of(server: ScriptedServer, chat: int) -> list[str]:
    return [tool["function"]["name"] for tool in server.chats[chat].body["tools"]]


def result_of(talk: Talk) -> Any:
    return next(event for event in talk.of("tool_finished") if event.tool == "task")


def transcripts(state: Path) -> list[list[dict[str, Any]]]:
    files = sorted(state.glob("sessions/*/*/subagents/*.jsonl"))
    return [[json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files]


async def test_report_is_all_that_the_main_conversation_gets(scripted_server: StartServer, work: Path):
    (work / "parser.py").write_text("the parser, secret words\n", "utf-8")
    server = scripted_server(TASK, call("read", path="parser.py"), "It is in parser.py.", "Found it.")
    async with talking(work, server, subagents="on") as talk:
        finished = await talk.turn("Find the parser")
    assert finished.answer == "Found it."
    first, helper, _, last = messages_of(server)
    assert extends(first, last)
    assert last[-1]["content"] == "It is in parser.py."
    assert "secret words" not in json.dumps(last)
    assert [message["role"] for message in helper] == ["system", "user"]
    assert helper[1]["content"] == "Where is the parser?"
    assert not talk.of("prefix_broken")
    [lost] = [event.text for event in talk.of("notice") if "were read again" in event.text]
    assert "another conversation had the slot" in lost


async def test_what_fills_its_own_window_is_summed_up_there(scripted_server: StartServer, work: Path):
    for number in range(8):
        lines = "".join(f"page {number} line {line} says nothing\n" for line in range(130))
        (work / f"page{number}.txt").write_text(lines, "utf-8")
    pages = iter([f"page{number}.txt" for number in range(8)])
    own = iter([TASK.tool_calls, "Found it."])

    def answer(body: Mapping[str, Any]) -> Step:
        if "Sum up our conversation" in body["messages"][-1]["content"]:
            return Step(text="Decided: to read on.", times=0)
        if not body["messages"][0]["content"].startswith("You are a helper"):
            said = next(own)
            return Step(text=said, times=0) if isinstance(said, str) else Step(tool_calls=said, times=0)
        path = next(pages, None)
        return (
            Step(text="No parser.", times=0)
            if path is None
            else Step(tool_calls=call("read", path=path).tool_calls, times=0)
        )

    server = scripted_server(answer, n_ctx=9_216)
    async with talking(work, server, subagents="on", reply_tokens=500) as talk:
        finished = await talk.turn("Find the parser")
    assert finished.answer == "Found it."
    assert result_of(talk).text.startswith("No parser.")
    assert any("Sum up our conversation" in one[-1]["content"] for one in messages_of(server))
    assert all(chat.prompt_tokens + chat.body["max_tokens"] <= 9_216 for chat in server.chats)
    assert not talk.of("compaction_started")


async def test_sub_agent_only_reads_and_cannot_start_others(scripted_server: StartServer, work: Path):
    server = scripted_server(TASK, call("task", prompt="You do it."), "Nothing.", "Done.")
    async with talking(work, server, subagents="on") as talk:
        await talk.turn("Go")
    assert "task" in tools_of(server, 0)
    assert tools_of(server, 1) == ["read", "search", "glob"]
    assert "There is no tool 'task'" in server.chats[2].body["messages"][-1]["content"]


async def test_what_it_does_is_shown_on_its_card_and_kept(scripted_server: StartServer, work: Path):
    server = scripted_server(TASK, call("glob", pattern="*.py"), "None.", "Done.")
    async with talking(work, server, subagents="on") as talk:
        await talk.turn("Go")
    output = "".join(event.text for event in talk.of("tool_output"))
    assert output.splitlines()[0] == "glob *.py"
    assert output.splitlines()[-1].startswith("2 steps, ")
    assert {event.call_id for event in talk.of("tool_output")} == {result_of(talk).call_id}
    [transcript] = transcripts(work.parent / "state")
    assert [record["tool"] for record in transcript if record["type"] == "tool_started"] == ["glob"]
    assert transcript[-1]["type"] == "turn_finished"


async def test_edits_are_asked_about_on_the_card_and_can_be_taken_back(
    scripted_server: StartServer, work: Path
):
    server = scripted_server(EDIT, call("write", path="a.txt", content="new\n"), "Wrote a.txt.", "Done.")
    async with talking(work, server, subagents="on", mode="ask") as talk:
        talk.session.prompt("Go")
        request = await talk.until("approval_request")
        talk.session.answer(request.request_id, Answer(kind="once"))
        await talk.until("turn_finished")
        assert request.tool == "write"
        assert request.call_id == result_of(talk).call_id
        assert (work / "a.txt").read_text("utf-8") == "new\n"
        assert [diff.path for diff in result_of(talk).diffs] == ["a.txt"]
        await talk.session.command("undo", {})
    assert not (work / "a.txt").exists()


async def test_refused_edit_is_in_the_report(scripted_server: StartServer, work: Path):
    server = scripted_server(EDIT, call("write", path="a.txt", content="new\n"), "I could not.", "Done.")
    async with talking(work, server, subagents="on", mode="accept-edits", deny=("write(a.txt)",)) as talk:
        await talk.turn("Go")
    assert not (work / "a.txt").exists()
    assert result_of(talk).text.startswith("I could not.\nRefused to it: ")
    assert len(result_of(talk).refused) == 1


async def test_a_hook_blocks_what_a_sub_agent_does_too(scripted_server: StartServer, work: Path):
    server = scripted_server(EDIT, call("write", path="a.txt", content="new\n"), "I could not.", "Done.")
    block = {"command": "echo 'not that file' >&2; exit 2", "tools": ["write"]}
    hooks = {"before_tool": (block,)}
    async with talking(work, server, subagents="on", mode="accept-edits", hooks=hooks) as talk:
        await talk.turn("Go")
    assert not (work / "a.txt").exists()
    assert "not that file" in server.chats[2].body["messages"][-1]["content"]
    assert len(result_of(talk).refused) == 1


async def test_plan_mode_lets_no_sub_agent_edit(scripted_server: StartServer, work: Path):
    server = scripted_server(EDIT, "Then not.")
    async with talking(work, server, subagents="on", mode="plan") as talk:
        await talk.turn("Go")
    assert "plan mode" in result_of(talk).text
    assert len(server.chats) == 2


async def test_file_that_only_the_sub_agent_read_has_to_be_read_before_it_is_changed(
    scripted_server: StartServer, work: Path
):
    (work / "a.txt").write_text("one\n", "utf-8")
    overwrite = call("write", path="a.txt", content="two\n")
    server = scripted_server(TASK, call("read", path="a.txt"), "It says one.", overwrite, "Then not.")
    async with talking(work, server, subagents="on", mode="accept-edits") as talk:
        await talk.turn("Go")
    assert (work / "a.txt").read_text("utf-8") == "one\n"


async def test_sub_agent_that_never_ends_is_stopped_at_its_share_of_the_steps(
    scripted_server: StartServer, work: Path
):
    steps = [call("glob", pattern=f"*.{number}") for number in range(20)]
    server = scripted_server(TASK, *steps, "Enough.")
    async with talking(work, server, subagents="on") as talk:
        finished = await talk.turn("Go")
    assert finished.answer == "Enough."
    assert result_of(talk).outcome == "error"
    assert "stopped before it was done: the limit of 19 steps" in result_of(talk).text


async def test_tool_calls_of_the_sub_agent_count_for_the_turn(scripted_server: StartServer, work: Path):
    looks = [call("glob", pattern=f"*.{number}") for number in range(4)]
    server = scripted_server(TASK, *looks, "Enough.")
    async with talking(work, server, subagents="on", tool_calls=5) as talk:
        finished = await talk.turn("Go")
    assert "stopped before it was done: the limit of 2 tool calls" in result_of(talk).text
    assert (finished.reason, finished.detail) == ("tool_call_limit", "the limit of 5 tool calls is reached")
    assert len(server.chats) == 5


async def test_last_tool_call_is_not_given_to_a_sub_agent(scripted_server: StartServer, work: Path):
    server = scripted_server(TASK, "Enough.")
    async with talking(work, server, subagents="on", tool_calls=2) as talk:
        finished = await talk.turn("Go")
    assert "not enough tool calls left" in result_of(talk).text
    assert finished.answer == "Enough."


async def test_cancel_ends_the_sub_agent_with_the_turn(scripted_server: StartServer, work: Path):
    server = scripted_server(TASK, {"fault": "endless", "text": "word "})
    async with talking(work, server, subagents="on") as talk:
        talk.session.prompt("Go")
        await asyncio.to_thread(server.wait_for_chats, 2)
        talk.session.cancel()
        finished = await talk.until("turn_finished")
    assert finished.reason == "cancelled"
    assert (result_of(talk).outcome, result_of(talk).text) == ("cancelled", "Cancelled before it ended.")
    assert server.chats[1].ended.wait(PATIENCE_SECONDS)
    assert server.chats[1].aborted


async def test_server_that_fails_meanwhile_is_a_result_and_not_the_end(
    scripted_server: StartServer, work: Path
):
    server = scripted_server(TASK, Step(fault="http_500", message="out of memory", times=3), "Then I do it.")
    async with talking(work, server, subagents="on") as talk:
        finished = await talk.turn("Go")
    assert finished.answer == "Then I do it."
    assert result_of(talk).text.startswith("The model server failed while the sub-agent worked: ")


async def test_two_slots_give_the_sub_agent_one_of_its_own(scripted_server: StartServer, work: Path):
    server = scripted_server(TASK, "Nothing.", "Done.", total_slots=2)
    async with talking(work, server, subagents="on") as talk:
        await talk.turn("Go")
    assert ["id_slot" in chat.body for chat in server.chats] == [False, True, False]


async def test_without_being_asked_for_nothing_of_it_is_in_the_prompt(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Hello.")
    async with talking(work, server) as talk:
        await talk.turn("Hi")
    assert "task" not in tools_of(server, 0)


BIG = {"name": "big", "engine": "llama-server", "target": {"file": "m.gguf"}, "context": 32_768}


@pytest.mark.parametrize(
    ("changes", "offered"),
    [
        ({}, True),
        ({"context": 8192}, False),
        ({"cache_ram_mib": 0}, False),
        ({"cache_ram_mib": 0, "slots": 2}, True),
        ({"model_card": {"subagents": False}}, False),
        ({"context": 8192, "model_card": {"subagents": True}}, True),
        ({"engine": "vllm", "url": "http://127.0.0.1:1", "cache_ram_mib": 0}, True),
        ({"engine": "remote", "url": "http://127.0.0.1:1"}, True),
    ],
)
def test_big_profiles_offer_sub_agents_where_the_conversation_stays_in_the_cache(
    changes: dict[str, Any], offered: bool
):
    profile = Profile.model_validate(BIG | changes)
    assert offers_subagents(profile, settings_with().settings) is offered


def test_server_of_which_nothing_is_known_offers_none():
    profile = Profile(name="remote", engine="remote", url="http://127.0.0.1:1")
    assert not offers_subagents(profile, settings_with().settings)


def test_the_setting_has_the_last_word():
    profile = Profile.model_validate(BIG)
    assert not offers_subagents(profile, settings_with(subagents="off").settings)
    small = Profile.model_validate(BIG | {"model_card": {"subagents": False}})
    assert offers_subagents(small, settings_with(subagents="on").settings)
