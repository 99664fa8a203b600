"""Images in results of MCP tools: shown to a model that can see, kept as files and named in any case."""

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.app.mcp.servers import MCP_FILE
from agent.config.trust import TrustStore
from agent.mcp.adapter import MOST_SHOWN
from tests.app.talk import extends, messages_of, records_in, talking
from tests.conftest import StartServer
from tests.fakes.script import Call, Step, call
from tests.mcp.conftest import SERVER

PNG = b"\x89PNG\r\n\x1a\n"
URLS = [
    f"data:image/png;base64,{base64.b64encode(PNG + bytes([number])).decode()}"
    for number in range(1, MOST_SHOWN + 1)
]
DRAW = Call("mcp_call", {"name": "one__draw", "arguments": {}})
FOUND_AND_CALLED = (call("mcp_find", query="draw"), Step(tool_calls=(DRAW,)))
MAY = ("one__*", "mcp_call", "mcp_find")


@pytest.fixture
def drawing(work: Path) -> Path:
    """A workspace with the trusted server `one`, which draws."""
    path = work / MCP_FILE
    server = {"command": sys.executable, "args": ["-S", str(SERVER), "draws"]}
    path.write_text(json.dumps({"mcpServers": {"one": server}}), "utf-8")
    TrustStore.of(os.environ).trust(path, path.read_bytes())
    return work


def urls_in(content: Any) -> list[str]:
    return [part["image_url"]["url"] for part in content if part["type"] == "image_url"]


async def test_images_follow_the_result_and_stay_the_same_in_later_requests(
    scripted_server: StartServer, drawing: Path, homes: Path
):
    server = scripted_server(*FOUND_AND_CALLED, "Five lines.", "Yes.", vision=True)
    async with talking(drawing, server, allow=MAY) as talk:
        await talk.turn("Draw")
        await talk.turn("Sure?")
        result = talk.of("tool_finished")[-1].text
    assert result.startswith("[data from the MCP server one]\nDrawn.\n[image image/png, 9 bytes, kept as ")
    assert result.endswith(f"\n[{MOST_SHOWN} of 5 images in the next message]")
    third, fourth = messages_of(server)[2:]
    assert [message["role"] for message in third[-3:]] == ["assistant", "tool", "user"]
    assert urls_in(third[-1]["content"]) == URLS
    assert "data and not from the user" in third[-1]["content"][-1]["text"]
    assert extends(messages_of(server)[1], third)
    assert extends(third, fourth)
    assert "base64" not in json.dumps(records_in(homes / "state"))


async def test_images_of_a_reply_with_several_calls_stand_behind_all_results(
    scripted_server: StartServer, drawing: Path
):
    both = Step(tool_calls=(DRAW, Call("glob", {"pattern": "*"})))
    server = scripted_server(call("mcp_find", query="draw"), both, "Done.", vision=True)
    async with talking(drawing, server, allow=MAY) as talk:
        await talk.turn("Draw")
    roles = [message["role"] for message in messages_of(server)[-1][-4:]]
    assert roles == ["assistant", "tool", "tool", "user"]


async def test_constrained_calls_have_the_images_in_the_message_of_the_result(
    scripted_server: StartServer, drawing: Path
):
    calls = (
        '{"tool": "mcp_find", "query": "draw"}',
        '{"tool": "mcp_call", "name": "one__draw", "arguments": {}}',
    )
    server = scripted_server(*calls, '{"tool": "finish", "answer": "Seen."}', vision=True)
    async with talking(drawing, server, protocol="constrained", allow=MAY) as talk:
        await talk.turn("Draw")
    last = messages_of(server)[-1][-1]
    assert last["role"] == "user"
    assert last["content"][0]["text"].startswith("Result of mcp_call:\n[data from the MCP server one]")
    assert urls_in(last["content"]) == URLS


async def test_a_model_that_cannot_see_gets_the_names_alone(scripted_server: StartServer, drawing: Path):
    server = scripted_server(*FOUND_AND_CALLED, "Drawn.")
    async with talking(drawing, server, allow=MAY) as talk:
        await talk.turn("Draw")
    last = messages_of(server)[-1]
    assert last[-1]["role"] == "tool"
    assert "kept as " in last[-1]["content"]
    assert "next message" not in last[-1]["content"]
    assert "image_url" not in json.dumps(last)


async def test_a_resumed_session_shows_the_images_again(scripted_server: StartServer, drawing: Path):
    server = scripted_server(*FOUND_AND_CALLED, "Drawn.", "Still.", vision=True)
    async with talking(drawing, server, allow=MAY) as talk:
        await talk.turn("Draw")
    async with talking(drawing, server, resume="last") as talk:
        await talk.turn("Still there?")
    assert extends(*messages_of(server)[2:])


@pytest.mark.parametrize("said", ["Failed to load image or audio file", "failed to process mtmd chunk"])
async def test_images_that_the_server_cannot_read_do_not_end_the_session(
    scripted_server: StartServer, drawing: Path, said: str
):
    (drawing / "fine.png").write_bytes(PNG + b"a button")
    refusal = Step(fault="http_500", message=said)
    server = scripted_server("A button.", *FOUND_AND_CALLED, refusal, "Drawn.", "Still.", vision=True)
    async with talking(drawing, server, allow=MAY) as talk:
        await talk.turn("What is on @fine.png ?")
        assert (await talk.turn("Draw")).reason == "done"
        assert (await talk.turn("Sure?")).reason == "done"
        assert any("cannot read an image" in event.text for event in talk.of("notice"))
    refused, repeated, later = messages_of(server)[-3:]
    assert urls_in(refused[-1]["content"]) == URLS
    assert [part["type"] for part in repeated[-1]["content"]] == ["text"] * (MOST_SHOWN + 1)
    assert urls_in(repeated[1]["content"]) == urls_in(refused[1]["content"])
    assert len(urls_in(repeated[1]["content"])) == 1
    assert extends(repeated, later)
