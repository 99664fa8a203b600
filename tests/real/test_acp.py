"""An editor and a program with a real model: a cold start, a cancel, a loaded session, a turn from Python."""

import asyncio
import os
from pathlib import Path

import pytest

from agent import Agent, TurnFinished
from agent.core.events import StepFinished, ToolCallDelta
from agent.resources import data_folder
from agent.server.record import list_records
from tests.acp.editor import editing

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace for the small model on one thread, with the models that are there."""
    monkeypatch.setenv(
        "AGENT_MODELS_FOLDER", os.environ.get("AGENT_MODELS_FOLDER") or str(data_folder() / "models")
    )
    for kind in ("config", "state", "data"):
        monkeypatch.setenv(f"AGENT_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("AGENT_PROFILE", "embedded-small")
    monkeypatch.setenv("AGENT_SERVER_THREADS", "1")
    monkeypatch.setenv("AGENT_SERVER_REUSE", "false")
    monkeypatch.setenv("AGENT_LIMITS_REPLY_TOKENS", "64")
    monkeypatch.setenv("AGENT_LIMITS_MAX_STEPS", "2")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n", "utf-8")
    return folder


async def test_a_cold_start_is_shown_a_cancel_ends_the_prompt_and_the_session_is_loaded_again(
    work: Path, tmp_path: Path
):
    async with editing(work, "plan") as editor:
        session = await editor.begin(work)
        turn = asyncio.create_task(editor.say(session, "Tell me about the files in this folder."))
        card = await editor.until("tool_call")
        assert card["title"].startswith("Model server: ")
        while (editor.card(card["toolCallId"]))["status"] != "completed":
            await editor.until("tool_call_update", len(editor.of("tool_call_update")) + 1)
        await editor.until("usage_update")
        await editor.agent.cancel(session_id=session)
        assert (await turn).stop_reason in ("cancelled", "end_turn", "max_turn_requests")
    async with editing(work, "plan") as editor:
        await editor.agent.initialize(protocol_version=1)
        await editor.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert editor.text("user_message_chunk") == "Tell me about the files in this folder."
    assert not list_records(tmp_path / "state" / "run")


async def test_a_turn_from_python_ends_with_its_result(work: Path, tmp_path: Path):
    async with Agent(work, permissions="plan") as agent:
        kinds = [type(event) async for event in agent.run("Read a.txt.")]
        assert kinds[-1] is TurnFinished
        # Whether its calls are whole, and what they call, is up to so small a model.
        assert {ToolCallDelta, StepFinished} <= set(kinds)
        assert agent.result.steps >= 1
        assert agent.result.stats.decoded_tokens > 0
        assert agent.facts.model
    assert not list_records(tmp_path / "state" / "run")
