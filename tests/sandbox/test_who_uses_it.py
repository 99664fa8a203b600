"""Everything that runs what the model wants goes by way of the sandbox, and fails closed."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.core.confinement import ConfinementError
from agent.core.tool import ToolContext
from agent.hooks.process import run_hook
from agent.hooks.spec import HookSpec, specs_from
from agent.verify.check import CheckCommand
from tests.tools.ledger import MemoryLedger
from tools.shell import ShellParams, ShellTool


class Recorder:
    """Passes on commands behind a program that marks their output."""

    def __init__(self, refuse: bool = False) -> None:
        self.refuse = refuse
        self.seen: list[tuple[tuple[str, ...], bool]] = []

    async def confined(self, arguments: Sequence[str], *, outlives: bool = False) -> Sequence[str]:
        if self.refuse:
            raise ConfinementError("no sandbox works here", "install one")
        self.seen.append((tuple(arguments), outlives))
        return ("/bin/sh", "-c", 'echo confined; exec "$@"', "sh", *arguments)

    def explanation(self, output: str) -> str:
        return "(the sandbox may be why)" if "Read-only file system" in output else ""


async def test_a_command_of_the_model_runs_confined_and_may_leave_something_behind(tmp_path: Path):
    recorder = Recorder()
    context = tool_context(tmp_path, recorder)
    result = await ShellTool().run(ShellParams(command="echo hello"), context)
    assert result.model_text.startswith("confined\nhello\n")
    assert recorder.seen[0][0][1:] == ("-c", "echo hello")
    assert recorder.seen[0][1]


async def test_a_failure_that_the_sandbox_explains_is_explained(tmp_path: Path):
    context = tool_context(tmp_path, Recorder())
    command = "echo 'touch: /x: Read-only file system'; exit 1"
    result = await ShellTool().run(ShellParams(command=command), context)
    assert result.model_text.endswith("(the sandbox may be why)\nexit code 1")


async def test_a_command_that_cannot_be_confined_and_has_to_be_is_not_started(tmp_path: Path):
    context = tool_context(tmp_path, Recorder(refuse=True))
    result = await ShellTool().run(ShellParams(command="touch made"), context)
    assert result.is_error
    assert "no sandbox works here" in result.model_text
    assert not (tmp_path / "made").exists()


async def test_a_check_runs_confined(tmp_path: Path):
    recorder = Recorder()
    check = CheckCommand(
        "touch made", tmp_path, environment=dict(os.environ), timeout_seconds=30, confinement=recorder
    )
    assert (await check.run()).passed
    assert recorder.seen == [(("/bin/sh", "-c", "touch made"), False)]


async def test_a_check_that_has_to_be_confined_and_cannot_be_does_not_run(tmp_path: Path):
    check = CheckCommand(
        "touch made",
        tmp_path,
        environment=dict(os.environ),
        timeout_seconds=30,
        confinement=Recorder(refuse=True),
    )
    with pytest.raises(OSError, match="no sandbox works here"):
        await check.run()
    assert not (tmp_path / "made").exists()


async def test_a_hook_runs_confined_unless_its_table_says_otherwise(tmp_path: Path):
    recorder = Recorder()
    inside, outside = specs_from(
        {"session_start": ["touch inside", {"command": "touch outside", "sandbox": False}]}, 30.0
    )
    for spec in (inside, outside):
        await run_hook(spec, {}, tmp_path, dict(os.environ), recorder)
    assert [words[-1] for words, _ in recorder.seen] == ["touch inside"]
    assert (tmp_path / "outside").exists()


async def test_a_hook_that_has_to_be_confined_and_cannot_be_says_so(tmp_path: Path):
    spec = HookSpec(event="session_start", command="touch made")
    answer = await run_hook(spec, {}, tmp_path, dict(os.environ), Recorder(refuse=True))
    assert "no sandbox works here" in answer.problem
    assert not (tmp_path / "made").exists()


def tool_context(folder: Path, confinement: Recorder) -> ToolContext:
    return ToolContext(
        workspace=folder,
        ledger=MemoryLedger(),
        spill_folder=folder / "spill",
        emit=lambda _: None,
        environment=dict(os.environ),
        confinement=confinement,
    )
