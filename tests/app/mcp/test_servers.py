"""MCP servers in sessions: trust, questions, stable tools."""

import json
import os
import sys
from pathlib import Path

import pytest

from agent.app.mcp.servers import MCP_FILE, find_servers
from agent.config.load import load_settings
from agent.config.trust import TrustStore
from agent.core.handle import Answer
from tests.app.talk import messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import call
from tests.mcp.conftest import SERVER


def with_server(work: Path, *habits: str, trusted: bool = True) -> Path:
    """Writes a `.mcp.json` with the fake server `one`."""
    path = work / MCP_FILE
    server = {"command": sys.executable, "args": ["-S", str(SERVER), *habits]}
    path.write_text(json.dumps({"mcpServers": {"one": server}}), "utf-8")
    if trusted:
        TrustStore.of(os.environ).trust(path, path.read_bytes())
    return path


async def test_tool_of_a_server_is_found_asked_about_and_called(scripted_server: StartServer, work: Path):
    with_server(work, "tools=60")
    server = scripted_server(
        call("mcp_find", query="echo"),
        call("mcp_call", name="one__echo", arguments={"text": "hello"}),
        "Done.",
    )
    async with talking(work, server) as talk:
        talk.session.prompt("Say hello")
        request = await talk.until("approval_request")
        talk.session.answer(request.request_id, Answer(kind="once"))
        await talk.until("turn_finished")
    assert (request.tool, request.arguments, request.suggested_rule) == (
        "one__echo",
        {"text": "hello"},
        "one__echo",
    )
    assert messages_of(server)[2][-1]["content"] == "[data from the MCP server one]\necho: hello"
    offered = [json.dumps(chat.body["tools"]) for chat in server.chats]
    assert len(set(offered)) == 1


async def test_rule_about_all_tools_of_a_server_needs_no_question(scripted_server: StartServer, work: Path):
    with_server(work)
    server = scripted_server(
        call("mcp_find"), call("mcp_call", name="one__echo", arguments={"text": "hello"}), "Done."
    )
    async with talking(work, server, allow=("one__*",)) as talk:
        await talk.turn("Say hello")
    assert not talk.of("approval_request")
    assert [event.outcome for event in talk.of("tool_finished")] == ["ok", "ok"]


async def test_rule_that_denies_a_tool_holds_behind_mcp_call(scripted_server: StartServer, work: Path):
    with_server(work)
    server = scripted_server(
        call("mcp_find"), call("mcp_call", name="one__echo", arguments={"text": "x"}), "Oh."
    )
    async with talking(work, server, allow=("mcp_call",), deny=("one__echo",)) as talk:
        await talk.turn("Say hello")
    assert [event.outcome for event in talk.of("tool_finished")] == ["ok", "denied"]


async def test_second_session_offers_few_tools_as_they_are(scripted_server: StartServer, work: Path):
    with_server(work)
    first, second = scripted_server(call("mcp_find"), "Done."), scripted_server("Hello.")
    for server in (first, second):
        async with talking(work, server) as talk:
            await talk.turn("Look")
    names = [tool["function"]["name"] for tool in second.chats[0].body["tools"]]
    assert "one__echo" in names
    assert "mcp_find" not in names


async def test_servers_of_a_project_wait_for_trust_and_a_changed_command_asks_again(
    scripted_server: StartServer, work: Path
):
    with_server(work)
    path = with_server(work, "tools=2", trusted=False)
    server = scripted_server("Hello.")
    async with talking(work, server) as talk:
        await talk.turn("Hi")
    names = [tool["function"]["name"] for tool in server.chats[0].body["tools"]]
    assert not any(name.startswith(("mcp_", "one__")) for name in names)
    notices = [event.text for event in talk.of("notice")]
    assert f"{path}: the MCP servers one are not used; `agent trust` shows and allows them" in notices


async def test_session_without_servers_has_the_tools_that_it_always_had(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Hello.")
    async with talking(work, server) as talk:
        await talk.turn("Hi")
    assert "mcp" not in json.dumps(server.chats[0].body["tools"])


def test_settings_win_over_the_file_and_can_switch_a_server_off(work: Path, homes: Path):
    with_server(work)
    (homes / "config").mkdir()
    file = homes / "config" / "config.toml"
    file.write_text('[mcp.servers.mine]\ncommand = "x"\n[mcp.servers.one]\nenabled = false\n', "utf-8")
    found = find_servers(work, load_settings(work, os.environ, {}).settings, os.environ)
    assert [spec.name for spec in found.specs] == ["mine"]


def test_servers_in_a_projects_settings_need_trust_too(work: Path):
    folder = work / ".agent"
    folder.mkdir()
    (folder / "config.toml").write_text('[mcp.servers.theirs]\ncommand = "evil"\n', "utf-8")
    loaded = load_settings(work, os.environ, {})
    assert loaded.settings.mcp.servers == {}
    assert "theirs" in loaded.notices[0]


async def test_servers_do_not_see_keys_unless_they_are_named(
    scripted_server: StartServer, work: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("AGENT_SERVER_API_KEY", "SOME_API_KEY", "NAMED_TOKEN", "PLAIN"):
        monkeypatch.setenv(name, "x")
    path = with_server(work, "acts")
    record = json.loads(path.read_text("utf-8"))
    record["mcpServers"]["one"]["env"] = {"NAMED_TOKEN": "${NAMED_TOKEN}"}
    path.write_text(json.dumps(record), "utf-8")
    TrustStore.of(os.environ).trust(path, path.read_bytes())
    server = scripted_server(call("mcp_find"), call("mcp_call", name="one__environment"), "Done.")
    async with talking(work, server, allow=("one__*",)) as talk:
        await talk.turn("Look")
    told = messages_of(server)[2][-1]["content"]
    assert [name in told for name in ("API_KEY", "NAMED_TOKEN", "PLAIN")] == [False, True, True]
