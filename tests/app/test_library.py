"""`from agent import Agent`: turns for programs, with typed events and a result."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import agent as package
from agent import Agent, AgentError, Answer, ApprovalRequest, TextDelta, ToolFinished, TurnFinished
from tests.conftest import StartServer
from tests.fakes.script import call

ROOT = Path(__file__).parents[2]


async def test_a_turn_is_events_and_then_a_result(
    scripted_server: StartServer, work: Path, monkeypatch: pytest.MonkeyPatch
):
    server = scripted_server(call("write", path="a.txt", content="one\n"), "Written.", "Again.")
    monkeypatch.setenv("AGENT_SERVER_URL", server.url)
    async with Agent(work, permissions="auto") as agent:
        events = [event async for event in agent.run("Write")]
        assert isinstance(events[-1], TurnFinished)
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Written."
        assert [event.outcome for event in events if isinstance(event, ToolFinished)] == ["ok"]
        result = agent.result
        assert (result.is_done, result.answer, result.changed) == (True, "Written.", ("a.txt",))
        assert result.stats.decoded_tokens > 0
        assert (await agent.ask("More")).answer == "Again."
    assert (work / "a.txt").read_text("utf-8") == "one\n"


@pytest.mark.parametrize(("answer", "is_made"), [(True, True), (False, False), (None, False)])
async def test_a_callback_decides_about_calls_and_without_one_they_are_refused(
    scripted_server: StartServer,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: bool | None,
    is_made: bool,
):
    server = scripted_server(call("shell", command="touch made"), "Done.")
    monkeypatch.setenv("AGENT_SERVER_URL", server.url)
    seen: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Answer | bool:
        seen.append(request)
        return bool(answer)

    async with Agent(work, permissions="ask", approve=None if answer is None else approve) as agent:
        assert (await agent.ask("Go")).is_done
    assert (work / "made").exists() is is_made
    assert [request.commands for request in seen] == ([] if answer is None else [("touch made",)])


async def test_a_session_goes_on_by_its_id(
    scripted_server: StartServer, work: Path, monkeypatch: pytest.MonkeyPatch
):
    server = scripted_server("One.", "Two.")
    monkeypatch.setenv("AGENT_SERVER_URL", server.url)
    async with Agent(work) as agent:
        session = (await agent.ask("First")).session_id
    async with Agent(work, resume=session) as agent:
        assert agent.session_id == session
        await agent.ask("Second")
    said = [one["content"] for one in server.chats[1].body["messages"] if one["role"] == "assistant"]
    assert said == ["One."]


async def test_leaving_the_loop_cancels_the_turn_and_the_next_one_works(
    scripted_server: StartServer, work: Path, monkeypatch: pytest.MonkeyPatch
):
    server = scripted_server({"fault": "pings", "text": "and so on"}, "Here.")
    monkeypatch.setenv("AGENT_SERVER_URL", server.url)
    async with Agent(work) as agent:
        async for event in agent.run("Go"):
            if isinstance(event, TextDelta):
                break
        assert (await agent.ask("Still there?")).answer == "Here."
    assert await asyncio.to_thread(server.chats[0].ended.wait, 20)
    assert server.chats[0].aborted


async def test_a_server_that_is_not_there_is_the_reason_of_the_end(
    work: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_SERVER_URL", "http://127.0.0.1:9")
    async with Agent(work) as agent:
        result = await agent.ask("Hi")
    assert result.reason == "server_failed"
    assert "127.0.0.1:9" in result.detail


async def test_mistakes_of_the_caller_are_errors_in_one_line(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_SERVER_URL", "http://127.0.0.1:9")
    with pytest.raises(AgentError, match="is not a folder"):
        async with Agent(work / "gone"):
            pass
    with pytest.raises(AgentError, match="no session"):
        async with Agent(work, resume="20200101-000000-abcd"):
            pass
    with pytest.raises(AgentError, match="not open"):
        await Agent(work).ask("Hi")
    async with Agent(work) as agent:
        with pytest.raises(AgentError, match="the prompt is empty"):
            await agent.ask(" \n")
        with pytest.raises(AgentError, match="no turn has ended"):
            _ = agent.result


def test_importing_the_package_loads_nothing_of_it():
    code = "import sys, agent; print([name for name in sys.modules if name.startswith('agent.')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_of_the_library_is_there_and_no_other():
    assert all(getattr(package, name) is not None for name in package.__all__)
    name = "nothing"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(package, name)


def test_the_example_of_the_documentation_runs(scripted_server: StartServer, work: Path):
    (work / "a.txt").write_text("one\n", "utf-8")
    server = scripted_server(call("read", path="a.txt"), call("shell", command="rm a.txt"), "It counts.")
    variables = {**os.environ, "AGENT_SERVER_URL": server.url, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "library" / "explain.py", work],
        env=variables,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "[read {'path': 'a.txt'}]" in done.stdout
    assert "[denied]" in done.stdout
    assert "It counts.\ndone, 3 steps, " in done.stdout
    assert (work / "a.txt").exists()
