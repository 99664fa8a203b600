"""What a person does about MCP servers inside of a session."""

import json
import os
import sys
from pathlib import Path

import pytest

from agent.app.mcp.servers import MCP_FILE
from agent.config.trust import TrustStore
from agent.core.errors import AgentError, UsageError
from tests.app.talk import messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import call
from tests.mcp.conftest import SERVER


def with_servers(work: Path, **servers: list[str]) -> None:
    """A trusted `.mcp.json` with fake servers of these habits; `off` among them switches one off."""
    path = work / MCP_FILE
    table = {
        name: {"command": sys.executable, "args": ["-S", str(SERVER), *habits], "disabled": "off" in habits}
        for name, habits in servers.items()
    }
    path.write_text(json.dumps({"mcpServers": table}), "utf-8")
    TrustStore.of(os.environ).trust(path, path.read_bytes())


async def test_servers_are_listed_and_connected_anew(scripted_server: StartServer, work: Path):
    with_servers(work, one=["tools=60"], two=[])
    server = scripted_server("Hello.")
    async with talking(work, server) as talk:
        before = await talk.session.command("mcp", {})
        detail = await talk.session.command("mcp", {"name": "one", "action": "reconnect"})
        after = await talk.session.command("mcp", {})
    assert [(row.name, row.state, row.tools) for row in before.servers] == [
        ("one", "not started", None),
        ("two", "not started", None),
    ]
    assert 0 < before.prompt_tokens < 300
    assert (detail.row.state, detail.row.tools) == ("running", 61)
    assert detail.row.tokens > 1000
    assert "one__tool_0" in [name for name, _ in detail.tools]
    assert [row.state for row in after.servers] == ["running", "not started"]


async def test_a_server_that_is_switched_off_is_refused_and_the_prompt_stays(
    scripted_server: StartServer, work: Path
):
    with_servers(work, one=["tools=60"])
    echo = call("mcp_call", name="one__echo", arguments={"text": "x"})
    server = scripted_server(call("mcp_find", query="echo"), echo, "Oh.", echo, "Fine.")
    async with talking(work, server, allow=("one__*",)) as talk:
        await talk.session.command("mcp", {"name": "one", "action": "reconnect"})
        await talk.session.command("mcp", {"name": "one", "action": "disable"})
        off = await talk.session.command("mcp", {})
        await talk.turn("Say x")
        await talk.session.command("mcp", {"name": "one", "action": "enable"})
        await talk.turn("Again")
    assert off.servers[0].state == "off"
    results = [one["content"] for one in messages_of(server)[-1] if one["role"] == "tool"]
    assert "one__echo" not in results[0]
    assert results[1] == "The user has switched off the MCP server one. Go on without it."
    assert results[2] == "[data from the MCP server one]\necho: x"
    assert len({json.dumps(chat.body["tools"]) for chat in server.chats}) == 1


async def test_nobody_is_asked_about_a_tool_of_a_server_that_is_off(scripted_server: StartServer, work: Path):
    with_servers(work, one=[])
    async with talking(work, scripted_server("Hello.")) as talk:
        await talk.session.command("mcp", {"name": "one", "action": "reconnect"})
    server = scripted_server(call("one__echo", text="x"), "Oh.")
    async with talking(work, server) as talk:
        await talk.session.command("mcp", {"name": "one", "action": "disable"})
        await talk.turn("Say x")
    assert not talk.of("approval_request")
    assert "switched off" in talk.of("tool_finished")[0].text


async def test_a_server_that_was_given_up_can_be_tried_again(scripted_server: StartServer, work: Path):
    with_servers(work, one=["dies-at-start"])
    async with talking(work, scripted_server("Hello.")) as talk:
        for _ in range(4):
            with pytest.raises(AgentError, match="one") as caught:
                await talk.session.command("mcp", {"name": "one", "action": "reconnect"})
            assert "third time" not in caught.value.message
        report = await talk.session.command("mcp", {})
    assert report.servers[0].state == "failed"
    assert report.servers[0].why


async def test_what_the_settings_switch_off_is_listed_with_the_way_to_have_it(
    scripted_server: StartServer, work: Path
):
    with_servers(work, one=["off"])
    async with talking(work, scripted_server("Hello.")) as talk:
        report = await talk.session.command("mcp", {})
        with pytest.raises(UsageError, match="switched off in the settings"):
            await talk.session.command("mcp", {"name": "one", "action": "enable"})
        with pytest.raises(UsageError, match="there is no MCP server 'other'"):
            await talk.session.command("mcp", {"name": "other"})
    assert [(row.name, row.state) for row in report.servers] == [("one", "off in the settings")]


async def test_a_tool_that_is_called_by_its_own_name_is_pointed_to_the_way_to_it(
    scripted_server: StartServer, work: Path
):
    with_servers(work, one=["tools=60"])
    own, unknown = call("one__echo", text="x"), call("one__nothing", text="x")
    server = scripted_server(call("mcp_find", query="echo"), own, unknown, "Fine.")
    async with talking(work, server, allow=("one__*",)) as talk:
        await talk.session.command("mcp", {"name": "one", "action": "reconnect"})
        await talk.turn("Say x")
    _, told, refused = [event.text for event in talk.of("tool_finished")]
    assert told == 'Call it with mcp_call: {"name": "one__echo", "arguments": {…}}'
    assert refused.startswith("There is no tool 'one__nothing'. The tools are: ")
