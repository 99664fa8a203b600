"""Prompts of MCP servers as commands, documents as mentions, and questions, in a session."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.app.mcp.offers import filled
from agent.app.mcp.servers import MCP_FILE
from agent.config.trust import TrustStore
from agent.core.errors import AgentError, UsageError
from agent.mcp.listing import PromptArgument
from tests.app.talk import Talk, messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import call
from tests.mcp.conftest import SERVER

WHO, HOW = PromptArgument("who", "", True), PromptArgument("how")


@pytest.fixture
def served(work: Path) -> Path:
    """A workspace with the trusted server `one`, which offers everything."""
    path = work / MCP_FILE
    server = {"command": sys.executable, "args": ["-S", str(SERVER), "acts", "offers"]}
    path.write_text(json.dumps({"mcpServers": {"one": server}}), "utf-8")
    TrustStore.of(os.environ).trust(path, path.read_bytes())
    return work


async def expanded(talk: Talk, name: str, arguments: str = "") -> Any:
    return await talk.session.command("expand", {"name": name, "arguments": arguments})


async def test_a_prompt_is_a_command_before_and_after_its_server_was_started(
    scripted_server: StartServer, served: Path
):
    async with talking(served, scripted_server()) as talk:
        assert await talk.session.command("resources", {}) == []
        assert await expanded(talk, "one:greet", "Ada warmly") == "Say warmly to Ada."
        rows = [row for row in await talk.session.command("commands", {}) if row.kind == "prompt"]
        assert [(row.name, row.takes, row.origin) for row in rows] == [
            ("one:greet", "who [how]", "one"),
            ("one:plain", "", "one"),
        ]
        assert await talk.session.command("resources", {}) == ["one:memo:today", "one:memo:picture"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("one:greet", "", "/one:greet needs who"),
        ("one:none", "", "the MCP server one has no prompt 'none'"),
        ("one:plain", "too much", "/one:plain takes no more than its name"),
        ("two:greet", "", "there is no command /two:greet"),
    ],
)
async def test_a_prompt_that_cannot_be_had_says_why(
    scripted_server: StartServer, served: Path, name: str, arguments: str, said: str
):
    async with talking(served, scripted_server()) as talk:
        with pytest.raises(AgentError) as caught:
            await expanded(talk, name, arguments)
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("rest", "values"),
    [
        ("Ada", {"who": "Ada"}),
        ("Ada very  warmly", {"who": "Ada", "how": "very warmly"}),
        ('"Ada L." hi', {"who": "Ada L.", "how": "hi"}),
        ("how=hi Ada", {"who": "Ada", "how": "hi"}),
        ("it's Ada", {"who": "it's", "how": "Ada"}),
    ],
)
def test_arguments_come_in_their_order_or_by_name(rest: str, values: dict[str, str]):
    assert filled("one:greet", (WHO, HOW), rest) == values


def test_too_many_arguments_are_not_thrown_away():
    with pytest.raises(UsageError, match="takes no more than who"):
        filled("one:greet", (WHO,), "who=Ada Bob")


async def test_a_mentioned_document_is_fenced_in_front_of_the_message(
    scripted_server: StartServer, served: Path
):
    server = scripted_server("Milk.")
    async with talking(served, server) as talk:
        await talk.turn("What is in @one:memo:today, and in @one:memo:none?")
    told = messages_of(server)[0][-1]["content"]
    assert "one:memo:today, from an MCP server:\n````\nBuy milk.\n``` and bread\n````" in told
    assert told.endswith("What is in @one:memo:today, and in @one:memo:none?")
    notices = [event.text for event in talk.of("notice")]
    assert "@one:memo:none is not attached: one refuses: no method resources/read" in notices


async def test_a_mentioned_picture_is_kept_beside_the_session(scripted_server: StartServer, served: Path):
    server = scripted_server("Nice.")
    async with talking(served, server) as talk:
        await talk.turn("Look at @one:memo:picture")
    told = messages_of(server)[0][-1]["content"]
    path = Path(told.partition("kept as ")[2].partition("]")[0])
    assert path.read_bytes() == b"hello"


async def test_a_question_waits_for_the_person_and_its_answer_is_in_no_record(
    scripted_server: StartServer, served: Path, homes: Path
):
    server = scripted_server(call("mcp_find"), call("mcp_call", name="one__ask", arguments={}), "Done.")
    async with talking(served, server, allow=("one__*",)) as talk:
        await talk.session.command("take_questions", {})
        talk.session.prompt("Ask me")
        asked = await talk.until("question_asked")
        reply = {"question_id": asked.question_id, "action": "accept", "values": {"note": "s3cr3t-note"}}
        assert await talk.session.command("reply", reply)
        assert not await talk.session.command("reply", reply)
        await talk.until("turn_finished")
    assert [event.outcome for event in talk.of("question_settled")] == ["accept"]
    assert '"note": "s3cr3t-note"' in messages_of(server)[2][-1]["content"]


async def test_a_question_in_a_front_that_shows_none_is_declined_and_told(
    scripted_server: StartServer, served: Path
):
    server = scripted_server(call("mcp_find"), call("mcp_call", name="one__ask", arguments={}), "Done.")
    async with talking(served, server, allow=("one__*",)) as talk:
        await talk.turn("Ask me")
    assert not talk.of("question_asked")
    assert '"action": "decline"' in messages_of(server)[2][-1]["content"]
    notices = [event.text for event in talk.of("notice")]
    assert "the MCP server one asks: Who are you? (declined, because nobody can be asked here)" in notices


async def test_interrupting_a_turn_takes_its_question_back(scripted_server: StartServer, served: Path):
    server = scripted_server(call("mcp_find"), call("mcp_call", name="one__ask", arguments={}), "Done.")
    async with talking(served, server, allow=("one__*",)) as talk:
        await talk.session.command("take_questions", {})
        talk.session.prompt("Ask me")
        await talk.until("question_asked")
        talk.session.cancel()
        assert (await talk.until("turn_finished")).reason == "cancelled"
        assert (await talk.until("question_settled")).outcome == "withdrawn"


async def test_a_tool_that_is_new_since_the_session_began_can_be_found_and_the_prompt_stays(
    scripted_server: StartServer, work: Path
):
    path = work / MCP_FILE
    server = {"command": sys.executable, "args": ["-S", str(SERVER), "changed", "tools=60"]}
    path.write_text(json.dumps({"mcpServers": {"one": server}}), "utf-8")
    TrustStore.of(os.environ).trust(path, path.read_bytes())
    model = scripted_server(
        call("mcp_find", query="echo"),
        call("mcp_call", name="one__echo", arguments={"text": "x"}),
        call("mcp_find", query="other"),
        call("mcp_call", name="one__other", arguments={"text": "y"}),
        "Done.",
    )
    async with talking(work, model, allow=("one__*",)) as talk:
        await talk.turn("Go")
    assert messages_of(model)[4][-1]["content"].endswith("other: y")
    assert len({json.dumps(chat.body["tools"]) for chat in model.chats}) == 1


async def test_progress_of_a_call_is_its_output(scripted_server: StartServer, served: Path):
    server = scripted_server(call("mcp_find"), call("mcp_call", name="one__progress", arguments={}), "Done.")
    async with talking(served, server, allow=("one__*",)) as talk:
        await talk.turn("Go")
    assert "".join(event.text for event in talk.of("tool_output")) == "1/3 step 1\n2/3 step 2\n3/3 step 3\n"
