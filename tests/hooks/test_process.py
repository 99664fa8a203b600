"""One hook: what it is told, what counts as its decision, and that nothing of it is left."""

import asyncio
import json
import os
import select
import tempfile
from pathlib import Path

import pytest

from agent.hooks.process import HookAnswer, run_hook
from agent.hooks.spec import HookSpec
from tests.patience import PATIENCE_SECONDS, limits


async def run(
    command: str, folder: Path, *, seconds: float = PATIENCE_SECONDS, payload: dict | None = None
) -> HookAnswer:
    spec = HookSpec(event="before_tool", command=command, seconds=seconds)
    return await run_hook(spec, payload or {}, folder, dict(os.environ))


def ends(process: int) -> bool:
    """Whether a process ends: one that was killed takes a moment on a busy machine."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], PATIENCE_SECONDS)[0])
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("true", HookAnswer()),
        ("echo '1 file reformatted'", HookAnswer()),
        ("""echo '{"decision": "allow"}'""", HookAnswer()),
        ("""echo '{"decision": "block", "feedback": "no"}'""", HookAnswer(blocked=True, feedback="no")),
        ("""echo '{"feedback": "well done"}'""", HookAnswer(feedback="well done")),
        ("echo no >&2; exit 2", HookAnswer(blocked=True, feedback="no")),
        ("exit 2", HookAnswer(blocked=True)),
        ("""echo '[1]'""", HookAnswer()),
    ],
)
async def test_decision_is_read(command: str, answer: HookAnswer, tmp_path: Path):
    assert await run(command, tmp_path) == answer


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("echo bad >&2; exit 3", "failed (exit code 3): bad"),
        ("kill -9 $$", "failed (killed by signal 9)"),
        ("no-such-program-here", "failed (exit code 127)"),
        ("echo '{'", "cannot be read"),
        ("""echo '{"decision": "maybe"}'""", "neither"),
        ("""echo '{"feedback": 7}'""", "no text"),
    ],
)
async def test_hook_that_fails_blocks_nothing_and_is_told(command: str, problem: str, tmp_path: Path):
    answer = await run(command, tmp_path)
    assert not answer.blocked
    assert problem in answer.problem


async def test_payload_comes_as_json_on_standard_input(tmp_path: Path):
    payload = {"tool": "write", "arguments": {"content": "ä" * 200_000}}
    await run("cat > seen.json", tmp_path, payload=payload)
    assert json.loads((tmp_path / "seen.json").read_text("utf-8")) == payload


async def test_hook_that_reads_nothing_is_no_trouble(tmp_path: Path):
    assert await run("true", tmp_path, payload={"text": "x" * 1_000_000}) == HookAnswer()


async def test_hanging_hook_is_ended_with_all_it_has_started(tmp_path: Path):
    child = tmp_path / "child"
    for seconds in limits(0.3):
        answer = await run("sleep 60 & echo $! > child; trap '' TERM; sleep 60", tmp_path, seconds=seconds)
        assert answer.timed_out
        assert not answer.blocked
        if child.exists() and child.read_text():
            break
    assert ends(int(child.read_text()))


async def test_hook_that_ends_leaves_nothing_behind(tmp_path: Path):
    assert await run("sleep 60 & echo $! > child", tmp_path) == HookAnswer()
    assert ends(int((tmp_path / "child").read_text()))


async def test_cancelled_hook_is_ended(tmp_path: Path):
    os.mkfifo(tmp_path / "started")
    work = asyncio.ensure_future(run("echo $$ > started; sleep 60", tmp_path, seconds=60))
    me = await asyncio.to_thread((tmp_path / "started").read_text)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert ends(int(me))


async def test_flood_of_output_is_cut(tmp_path: Path):
    answer = await run("head -c 20000000 /dev/zero | tr '\\0' x >&2; exit 2", tmp_path)
    assert answer.blocked
    assert 3000 < len(answer.feedback) < 5000


async def test_a_hook_that_cannot_be_told_anything_for_want_of_a_disk_is_a_problem_and_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    answer = await run("exit 2", tmp_path)
    assert answer == HookAnswer(problem="cannot be started: No such file or directory")


async def test_a_command_with_a_zero_in_it_is_a_problem_and_no_crash(tmp_path: Path):
    answer = await run("echo a\0b", tmp_path)
    assert answer == HookAnswer(problem="cannot be started: it contains a character that no command can have")


async def test_folder_that_is_gone_is_told(tmp_path: Path):
    answer = await run("true", tmp_path / "gone")
    assert "cannot be started" in answer.problem
