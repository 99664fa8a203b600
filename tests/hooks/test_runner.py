"""The hooks of a session together: whom they are about, and when one is given up."""

import json
import os
from pathlib import Path

from agent.hooks.runner import HookRunner
from agent.hooks.spec import specs_from
from tests.patience import PATIENCE_SECONDS, limits

BLOCK = """echo '{"decision": "block", "feedback": "not now"}'"""


def runner(
    folder: Path, notices: list[str], seconds: float = PATIENCE_SECONDS, **entries: list
) -> HookRunner:
    return HookRunner(
        specs=specs_from(entries, seconds),
        workspace=folder,
        session_id="s1",
        environment=lambda: os.environ,
        notify=notices.append,
    )


async def test_hook_is_told_of_the_call(tmp_path: Path):
    hooks = runner(tmp_path, [], before_tool=["cat > seen.json"])
    assert await hooks.before_tool("edit", {"path": "a.py"}) is None
    assert json.loads((tmp_path / "seen.json").read_text()) == {
        "event": "before_tool",
        "session_id": "s1",
        "workspace": str(tmp_path),
        "tool": "edit",
        "arguments": {"path": "a.py"},
    }


async def test_first_objection_counts_and_ends_the_row(tmp_path: Path):
    hooks = runner(tmp_path, [], before_tool=[BLOCK, "touch later"])
    objection = await hooks.before_tool("shell", {})
    assert objection is not None
    assert objection.feedback == "not now"
    assert not (tmp_path / "later").exists()


async def test_hook_about_some_tools_leaves_the_others(tmp_path: Path):
    hooks = runner(tmp_path, [], before_tool=[{"command": BLOCK, "tools": ["edit", "mcp_*"]}])
    assert await hooks.before_tool("read", {}) is None
    assert await hooks.before_tool("mcp_files", {}) is not None


async def test_feedback_of_all_hooks_after_a_tool_is_put_together(tmp_path: Path):
    say = """echo '{"feedback": "formatted"}'"""
    hooks = runner(tmp_path, [], after_tool=[say, BLOCK])
    assert await hooks.after_tool("edit", {}, outcome="ok", result="Done.") == ("formatted\nnot now", True)


async def test_block_without_a_reason_gets_one(tmp_path: Path):
    objection = await runner(tmp_path, [], before_finish=["exit 2"]).before_finish()
    assert objection is not None
    assert objection.feedback


async def test_start_of_a_session_cannot_be_blocked(tmp_path: Path):
    notices: list[str] = []
    assert await runner(tmp_path, notices, session_start=[BLOCK]).session_start() == "not now"
    assert "cannot block" in notices[0]


async def test_hook_that_hangs_three_times_is_left_out(tmp_path: Path):
    runs = tmp_path / "runs"
    for seconds in limits(0.2):
        notices: list[str] = []
        runs.write_text("")
        hang = {"command": "echo x >> runs; sleep 60", "seconds": seconds}
        hooks = runner(tmp_path, notices, before_tool=[hang])
        for _ in range(5):
            assert await hooks.before_tool("edit", {}) is None
        assert len(notices) == 3
        assert "left out" in notices[-1]
        if runs.read_text() == "x\n" * 3:
            break
    assert runs.read_text() == "x\n" * 3


async def test_without_hooks_nothing_happens(tmp_path: Path):
    hooks = runner(tmp_path, [])
    assert not hooks.has("before_tool")
    assert await hooks.before_finish() is None
    assert await hooks.session_start() == ""


async def test_a_hook_about_the_tool_that_calls_another_is_asked_too(tmp_path: Path):
    hooks = runner(tmp_path, [], before_tool=[{"command": BLOCK, "tools": ["mcp_call"]}])
    assert await hooks.before_tool("one__echo", {}, "mcp_call") is not None
    assert await hooks.before_tool("one__echo", {}) is None
