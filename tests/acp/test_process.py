"""`agent acp` as editors start it: what is on its streams, how it ends, and what it leaves."""

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path

import pytest
from acp import text_block

from tests.acp.editor import PATIENCE_SECONDS, ROOT, editing, ended, environment, raw, start, started
from tests.conftest import StartServer
from tests.fakes.script import Step, call

pytestmark = pytest.mark.timeout(180)

INITIALIZE = json.dumps(
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 99}}
).encode()


def running(seconds: str) -> list[int]:
    """The processes that sleep for so long. Their numbers in a sandbox would be others."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", seconds.encode()]:
                found.append(int(folder.name))
    return found


async def until_running(seconds: str) -> None:
    """The card of a command is shown a moment before the command itself is there."""
    for _ in range(1500):
        if running(seconds):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the command was never started")


async def test_only_the_protocol_is_on_stdout_and_bad_lines_are_answered(tmp_path: Path, work: Path):
    process = await start(environment(tmp_path), folder=work)
    answers = await raw(
        process,
        INITIALIZE,
        b"this is no JSON",
        b"\xff\xfe",
        b"[]",
        b'{"jsonrpc": "2.0", "id": [1], "method": "initialize"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": 3}}',
        b'{"jsonrpc": "2.0", "id": 2, "method": "no/such"}',
        b'{"jsonrpc": "2.0", "id": 3, "method": "authenticate", "params": {"methodId": "x"}}',
        b'{"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "none"}}',
        b'{"id": 4, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}',
        b'{"jsonrpc": "2.0", "id": 77, "result": {}}',
    )
    assert process.returncode == 0
    by_id = {answer["id"]: answer for answer in answers if answer["id"] is not None}
    result = by_id[0]["result"]
    assert result["protocolVersion"] == 1
    assert result["authMethods"] == []
    assert result["agentInfo"]["name"] == "dflash-agent"
    capabilities = result["agentCapabilities"]
    assert capabilities["loadSession"] is True
    assert capabilities["promptCapabilities"] == {"image": False, "audio": False, "embeddedContext": True}
    assert capabilities["mcpCapabilities"] == {"http": True, "sse": True}
    assert set(capabilities["sessionCapabilities"]) == {"list", "fork", "resume", "close"}
    assert [answer["error"]["code"] for answer in answers if answer["id"] is None] == [-32700] * 2 + [
        -32600
    ] * 2
    assert by_id[1]["error"]["message"].startswith("Invalid params: cwd: ")
    assert by_id[2]["error"]["message"] == "Method not found: no/such"
    assert "nothing to sign in to" in by_id[3]["error"]["message"]
    assert by_id[4]["error"]["message"] == "no session 'x' is open; load it first, or begin a new one"


async def test_a_whole_turn_with_a_question_over_the_pipes_of_a_process(
    use: StartServer, tmp_path: Path, work: Path
):
    server = use(Step(text="I run it.", tool_calls=call("shell", command="touch made").tool_calls), "Done.")
    async with started(environment(tmp_path, AGENT_SERVER_URL=server.url), folder=work) as (editor, _):
        session = await editor.begin(work)
        turn = asyncio.create_task(editor.say(session, "Go"))
        (await editor.question()).answer("once")
        assert (await turn).stop_reason == "end_turn"
        assert editor.text() == "I run it.Done."
    assert (work / "made").exists()


@pytest.mark.parametrize("how", ["its input ends", "it is told to end"])
async def test_nothing_is_left_running_when_the_editor_is_gone(
    use: StartServer, tmp_path: Path, work: Path, how: str
):
    seconds = f"600.{os.getpid()}{len(how)}"
    server = use(call("shell", command=f"echo up; sleep {seconds}; echo down"))
    home = environment(tmp_path, AGENT_SERVER_URL=server.url)
    is_eof = how == "its input ends"
    code = 0 if is_eof else 130
    async with started(home, "--mode", "auto", folder=work, code=code) as (editor, process):
        session = await editor.begin(work)
        turn = asyncio.create_task(editor.say(session, "Wait"))
        await editor.until("tool_call_update")
        await until_running(seconds)
        if is_eof:
            assert process.stdin is not None
            process.stdin.close()
        else:
            process.terminate()
        await ended(process)
        assert (await turn).stop_reason == "cancelled"
    assert not running(seconds)


async def test_a_session_that_was_killed_can_be_loaded_and_goes_on(
    use: StartServer, tmp_path: Path, work: Path
):
    seconds = f"600.{os.getpid()}0"
    server = use(call("shell", command=f"echo up; sleep {seconds}; echo down"), "Back again.")
    home = environment(tmp_path, AGENT_SERVER_URL=server.url)
    async with started(home, "--mode", "auto", folder=work, code=None) as (editor, process):
        session = await editor.begin(work)
        turn = asyncio.create_task(editor.say(session, "Wait"))
        await editor.until("tool_call_update")
        process.kill()
        with pytest.raises(ConnectionError):
            await turn
    async with editing(work) as editor:
        await editor.agent.initialize(protocol_version=1)
        await editor.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert [card["status"] for card in editor.cards()] == ["failed"]
        answer = await editor.agent.prompt(session_id=session, prompt=[text_block("Go on")])
        assert answer.stop_reason == "end_turn"
        assert editor.text() == "Back again."
    for left in running(seconds):
        os.kill(left, signal.SIGKILL)


async def test_without_the_library_one_line_says_how_to_get_it(tmp_path: Path, work: Path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['acp'] = None\n", "utf-8")
    variables = environment(tmp_path) | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    process = await start(variables, folder=work)
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, err = await process.communicate()
    assert process.returncode == 2
    assert out == b""
    assert err.decode() == (
        "agent: the package agent-client-protocol is not installed\nhint: pip install 'dflash-agent[acp]'\n"
    )
