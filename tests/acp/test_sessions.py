"""Sessions of an editor: several at once, loaded, resumed, forked, listed; servers that it brings."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.schema import EnvVariable, McpServerStdio

from agent.acp.server import serve
from agent.app.acp import EditorHost
from tests.acp.editor import PATIENCE_SECONDS, ROOT, editing
from tests.conftest import StartServer
from tests.fakes.script import Step, StepLike, call

# A busy machine takes many seconds to load the libraries of models and of MCP.
pytestmark = pytest.mark.timeout(180)


async def test_a_loaded_session_is_told_again_and_goes_on(use: StartServer, work: Path):
    (work / "a.txt").write_text("one\n", "utf-8")
    server = use(Step(text="I look.", tool_calls=call("read", path="a.txt").tool_calls), "One.", "Two.")
    async with editing(work) as editor:
        session = await editor.begin(work)
        await editor.say(session, "What is in a.txt?")
    async with editing(work) as editor:
        await editor.agent.initialize(protocol_version=1)
        loaded = await editor.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert loaded.modes is not None
        assert editor.text("user_message_chunk") == "What is in a.txt?"
        assert editor.text() == "I look.One."
        assert [card["status"] for card in editor.cards()] == ["completed"]
        told = [kind for kind in editor.order if kind != "available_commands_update"]
        assert told == [
            "answer",
            "user_message_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk",
            "answer",
        ]
        await editor.say(session, "And now?")
        assert editor.text().endswith("Two.")
    before, after = server.chats[1].body["messages"], server.chats[2].body["messages"]
    assert after[: len(before)] == before


async def test_a_session_is_closed_resumed_forked_and_listed(use: StartServer, work: Path):
    server = use("One.", "Two.", "Three.")
    async with editing(work) as editor:
        session = await editor.begin(work)
        await editor.say(session, "First")
        await editor.agent.close_session(session_id=session)
        with pytest.raises(RequestError, match="is open; load it first"):
            await editor.say(session, "Gone?")
        await editor.agent.resume_session(cwd=str(work), session_id=session, mcp_servers=[])
        await editor.say(session, "Second")
        assert editor.text() == "One.Two."
        fork = await editor.agent.fork_session(cwd=str(work), session_id=session, mcp_servers=[])
        await editor.say(fork.session_id, "Third")
        listed = await editor.agent.list_sessions(cwd=str(work))
    assert {one.session_id for one in listed.sessions} == {session, fork.session_id}
    assert {one.title for one in listed.sessions} == {"First"}
    said = [one["content"] for one in server.chats[2].body["messages"] if one["role"] == "assistant"]
    assert said == ["One.", "Two."]


async def test_an_open_session_may_be_loaded_once_more(use: StartServer, work: Path):
    use("One.", "Two.")
    async with editing(work) as editor:
        session = await editor.begin(work)
        await editor.say(session, "First")
        await editor.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        await editor.say(session, "Second")
        assert editor.text() == "One.One.Two."


async def test_sessions_in_two_folders_run_at_the_same_time(use: StartServer, work: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()

    def reply(body: Mapping[str, Any]) -> StepLike:
        goes_on = "Go" in body["messages"][1]["content"]
        return Step(fault="pings", text="again") if goes_on else "Here."

    use(reply, reply, reply, reply)
    async with editing(work) as editor:
        one = await editor.begin(work)
        two = (await editor.agent.new_session(cwd=str(other), mcp_servers=[])).session_id
        turn = asyncio.create_task(editor.say(one, "Go"))
        await editor.until("agent_message_chunk")
        assert (await editor.say(two, "Hi")).stop_reason == "end_turn"
        assert editor.text(session_id=two) == "Here."
        await editor.agent.cancel(session_id=one)
        assert (await turn).stop_reason == "cancelled"


async def test_an_mcp_server_of_the_editor_is_used(use: StartServer, work: Path):
    server = use(
        call("mcp_find"), call("mcp_call", name="from-the-editor__echo", arguments={"text": "x"}), "Ok."
    )
    given = McpServerStdio(
        name="from the editor",
        command=sys.executable,
        args=["-m", "tests.fakes.mcp_server", "tools=1"],
        env=[EnvVariable(name="PYTHONPATH", value=str(ROOT))],
    )
    async with editing(work) as editor:
        await editor.agent.initialize(protocol_version=1)
        session = await editor.agent.new_session(cwd=str(work), mcp_servers=[given])
        turn = asyncio.create_task(editor.say(session.session_id, "Hi"))
        (await editor.question()).answer("once")
        await turn
        await editor.say(session.session_id, "/mcp")
        await editor.say(session.session_id, "/mcp from-the-editor")
        assert editor.text().count("| from-the-editor |") == 2
        called = editor.cards()[-1]
        assert (called["title"], called["status"]) == ("from-the-editor__echo", "completed")
        assert "echo: x" in called["content"][0]["content"]["text"]
    assert "from-the-editor" in str(server.chats[0].body["tools"])


async def test_an_editor_that_reads_nothing_keeps_nothing_alive(use: StartServer, work: Path):
    server = use({"text": "many words " * 20_000, "fault": "pings"})
    source, to_agent = os.pipe()
    from_agent, sink = os.pipe()
    agent = asyncio.create_task(serve(EditorHost(), source, sink, asyncio.Event()))
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": str(work), "mcpServers": []}}
    os.write(to_agent, json.dumps(new).encode() + b"\n")
    answer = await asyncio.to_thread(os.read, from_agent, 1 << 16)
    session = json.loads(answer.splitlines()[0])["result"]["sessionId"]
    words = [{"type": "text", "text": "Go"}]
    prompt = {"id": 2, "method": "session/prompt", "params": {"sessionId": session, "prompt": words}}
    os.write(to_agent, json.dumps(prompt).encode() + b"\n")
    await asyncio.to_thread(server.wait_for_chats, 1, PATIENCE_SECONDS)
    os.close(to_agent)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await agent
    assert await asyncio.to_thread(server.chats[0].ended.wait, PATIENCE_SECONDS)
    os.close(from_agent)


async def test_what_cannot_be_opened_is_refused_in_one_line(work: Path, monkeypatch: pytest.MonkeyPatch):
    async with editing(work) as editor:
        await editor.agent.initialize(protocol_version=1)
        for name in ("last", "20200101-000000-abcd", "../../x", ""):
            with pytest.raises(RequestError, match="no session"):
                await editor.agent.load_session(cwd=str(work), session_id=name, mcp_servers=[])
        with pytest.raises(RequestError, match="absolute path"):
            await editor.agent.new_session(cwd="here", mcp_servers=[])
        with pytest.raises(RequestError, match="is not a folder"):
            await editor.agent.new_session(cwd=str(work / "gone"), mcp_servers=[])
        listed = await editor.agent.list_sessions(cwd=str(work))
        monkeypatch.setenv("AGENT_PROFILE", "nothing-of-this-name")
        with pytest.raises(RequestError, match="nothing-of-this-name") as refused:
            await editor.agent.new_session(cwd=str(work), mcp_servers=[])
    assert "\n" not in str(refused.value)
    assert listed.sessions == []
