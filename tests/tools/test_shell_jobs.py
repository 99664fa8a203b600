"""Commands in the background: started, looked at, waited for and ended."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.core.tool import ToolContext, ToolResult
from tests.tools.shelling import Shell, is_running, opened
from tools.shell import ShellParams


@pytest.fixture
async def shell(context: ToolContext) -> AsyncIterator[Shell]:
    async for shell in opened(context):
        yield shell


async def spoken(shell: Shell, result: ToolResult) -> str:
    """What job 1 says first, which a machine that is held up shows only to a later look."""
    while result.model_text.startswith("(no new output)"):
        result = await shell("wait %1", seconds=1)
    return result.model_text


async def test_a_job_goes_on_while_other_commands_run(shell: Shell, workspace: Path):
    started = await shell("mkfifo go; echo up; cat go > /dev/null; echo late", background=True)

    assert not started.is_error
    assert (await spoken(shell, started)).startswith("up\njob 1 runs for ")
    assert "`kill %1` ends it" in started.model_text
    assert (await shell("echo other")).model_text == "other\nexit code 0"
    await shell("echo > go")
    assert (await shell("wait %1")).model_text.startswith("late\njob 1 has ended, exit code 0\n")


async def test_a_job_that_ends_at_once_says_how(shell: Shell):
    result = await shell("echo broken; exit 3", background=True)

    said = result.model_text
    if "job 1 runs for" in said:  # a machine that is held up: more than the first look takes
        said = said.partition("job 1 runs for")[0] + (await shell("wait %1")).model_text
    assert said.replace("(no new output)\n", "").startswith("broken\njob 1 has ended, exit code 3")
    assert "kill %1" not in said


async def test_only_what_is_new_is_shown_and_all_of_it_is_in_the_file(shell: Shell):
    command = "mkfifo go; echo one; cat go > /dev/null; echo two; cat go"
    first = await spoken(shell, await shell(command, background=True))
    await shell("echo > go")

    second = await spoken(shell, await shell("jobs 1"))

    assert first.startswith("one\njob 1 runs for ")
    assert second.startswith("two\njob 1 runs for ")
    kept = Path(second.rpartition("all output: ")[2])
    assert kept.read_text("utf-8").split() == ["one", "two"]
    await shell("kill %1")
    assert kept.read_text("utf-8").split() == ["one", "two"]


async def test_a_job_is_ended_with_all_that_it_started(shell: Shell, workspace: Path):
    command = "trap '' TERM; sleep 600 & echo $! > child; setsid sleep 600 & echo $! > other; echo up; wait"
    await spoken(shell, await shell(command, background=True))

    result = await shell("kill %1")

    assert "job 1 has ended, exit code 137 (killed by SIGKILL)" in result.model_text
    for name in ("child", "other"):
        assert not is_running(int((workspace / name).read_text("utf-8")))


async def test_jobs_are_listed(shell: Shell):
    assert (await shell("jobs")).model_text == "(no jobs)"
    await shell("sleep 600", background=True)
    await shell("true", background=True)
    await shell("wait %2")

    lines = (await shell(" jobs ")).model_text.split("\n")

    assert lines[0].startswith("job 1 runs for ")
    assert lines[0].endswith("s: sleep 600")
    assert lines[1] == "job 2 has ended, exit code 0: true"


async def test_waiting_ends_with_the_time(shell: Shell):
    await shell("sleep 600", background=True)

    assert (await shell("wait %1", seconds=1)).model_text.startswith("(no new output)\njob 1 runs for ")


async def test_a_job_that_is_not_there_is_an_error_with_those_that_are(shell: Shell):
    await shell("true", background=True)

    result = await shell("kill %7")

    assert (result.model_text, result.is_error) == ("There is no job 7. Jobs: 1.", True)


@pytest.mark.parametrize("command", ["kill 1", "kill %1 && echo", "jobs | cat", "wait", "fg", "jobs -l; ls"])
async def test_other_commands_that_begin_alike_are_left_to_bash(shell: Shell, command: str):
    assert shell.tool.acts_as(ShellParams(command=command)) is None


@pytest.mark.parametrize(
    "command", ["jobs", "jobs 1", "jobs %1", "kill %1", "kill -9 %1", "fg %1", "wait %1"]
)
async def test_what_is_only_about_jobs_needs_no_permission_of_its_own(shell: Shell, command: str):
    assert shell.tool.acts_as(ShellParams(command=command)) == (shell.tool, {"command": "true"})


@pytest.mark.parametrize(
    ("command", "background"), [("sleep 600", True), ("sleep 600 > /dev/null 2>&1 &", False)]
)
async def test_the_tool_knows_that_something_goes_on(shell: Shell, command: str, background: bool):
    await shell("true")
    assert not shell.tool.leaves_running
    await shell(command, background=background)
    assert shell.tool.leaves_running
    shell.tool.stop_background()
    assert not shell.tool.leaves_running


async def test_jobs_end_with_the_session(shell: Shell, workspace: Path):
    await spoken(shell, await shell("echo $$ > pid; echo up; exec sleep 600", background=True))

    shell.tool.stop_background()

    assert not is_running(int((workspace / "pid").read_text("utf-8")))


async def test_a_job_that_cannot_be_started_is_an_error(shell: Shell):
    assert (await shell("echo a\0b", background=True)).is_error
