import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from pydantic import ValidationError

from agent.core.tool import ToolContext
from tests.patience import limits
from tools.shell import ShellParams, ShellTool


@pytest.fixture
def tool():
    tool = ShellTool()
    yield tool
    tool.stop_background()


@pytest.fixture
def shell(tool: ShellTool, context: ToolContext):
    async def run(command: str, **options: int):
        return await tool.run(ShellParams.model_validate({"command": command, **options}), context)

    return run


def is_running(process_id: int) -> bool:
    try:
        return psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_gives_output_and_exit_code(shell, emitted: list[str]):
    result = await shell("echo out; echo err >&2")

    assert result.model_text == "out\nerr\nexit code 0"
    assert "".join(emitted) == "out\nerr\n"


async def test_a_command_in_a_fence_is_refused_before_anything_is_run():
    with pytest.raises(ValidationError, match="leave out the ``` around the command"):
        ShellParams.model_validate({"command": "```bash\ncat list.txt\n```"})


async def test_a_failing_command_is_a_fact_and_no_error(shell):
    result = await shell("false")

    assert result.model_text == "(no output)\nexit code 1"
    assert not result.is_error


async def test_names_the_signal_that_ended_the_command(shell):
    assert (await shell("kill -KILL $$")).model_text == "(no output)\nexit code 137 (killed by SIGKILL)"


async def test_runs_in_the_workspace(shell, workspace: Path):
    assert (await shell("pwd -P")).model_text == f"{workspace}\nexit code 0"


async def test_understands_bash(shell):
    assert (await shell("x=(a b); [[ ${x[1]} == b ]] && echo yes")).model_text == "yes\nexit code 0"


async def test_works_with_sh_where_there_is_no_bash(context: ToolContext, tmp_path: Path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    without_bash = replace(context, environment={"PATH": str(tmp_path / "bin")})

    result = await ShellTool().run(ShellParams(command='echo "$0"'), without_bash)

    assert result.model_text == f"{tmp_path}/bin/sh\nexit code 0"


@pytest.fixture
def open_input() -> Iterator[None]:
    """The program's own input is a pipe that somebody holds open, as scripts and CI leave it."""
    reading, writing = os.pipe()
    before = os.dup(0)
    os.dup2(reading, 0)
    yield
    os.dup2(before, 0)
    for descriptor in (reading, writing, before):
        os.close(descriptor)


@pytest.mark.usefixtures("open_input")
async def test_input_is_closed_also_where_the_programs_own_stays_open(shell):
    result = await shell("cat; read x || echo nothing", timeout=30)
    assert result.model_text == "nothing\nexit code 0"
    first = await shell("cat; echo done", background=True)
    rest = await shell("wait %1", timeout=30)
    assert "done" in first.model_text + rest.model_text
    assert "job 1 has ended, exit code 0" in rest.model_text


async def test_there_is_no_terminal_to_ask_on(shell):
    assert "exit code 0" not in (await shell("echo hello > /dev/tty")).model_text


async def test_pagers_and_prompts_are_off(shell):
    result = await shell('echo "$PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $TERM"')

    assert result.model_text == "cat cat 0 dumb\nexit code 0"


async def test_the_environment_is_the_one_handed_in(context: ToolContext):
    own = replace(context, environment={"PATH": os.environ["PATH"], "ONLY": "this"})

    result = await ShellTool().run(ShellParams(command='echo "$ONLY${HOME-}"'), own)

    assert result.model_text == "this\nexit code 0"


async def test_returns_when_the_shell_ends_even_if_a_child_holds_the_output(shell):
    result = await shell("sleep 600 & echo done")

    assert result.model_text == "done\n(a process goes on in the background)\nexit code 0"


async def test_a_process_in_the_background_may_go_on_printing(shell):
    await shell("mkfifo go result; { cat go; echo late; echo survived > result; } &")

    assert (await shell("echo > go; cat result")).model_text == "survived\nexit code 0"


async def test_what_runs_in_the_background_can_be_stopped(shell, tool: ShellTool, workspace: Path):
    wait_to_be_ended = "trap 'echo ended > result; exit' TERM; echo > up; while :; do sleep 0.1; done"
    await shell(f"mkfifo up; ({wait_to_be_ended}) & cat up")

    tool.stop_background()

    assert (workspace / "result").read_text(encoding="utf-8") == "ended\n"


async def test_what_left_its_group_or_ignores_the_request_is_stopped_too(
    shell, tool: ShellTool, workspace: Path
):
    await shell("mkfifo up; (trap '' TERM; echo > up; exec sleep 600) & echo $! > stubborn; cat up")
    await shell("setsid sleep 600 > /dev/null 2>&1 & echo $! > elsewhere")

    tool.stop_background()

    for name in ("stubborn", "elsewhere"):
        assert not is_running(int((workspace / name).read_text(encoding="utf-8")))


async def test_output_of_a_process_substitution_is_not_lost(shell):
    assert (await shell("exec > >(cat); echo through")).model_text.startswith("through\n")


async def test_the_whole_group_is_ended_when_time_is_up(context: ToolContext, workspace: Path):
    command = "sleep 600 & echo $! > pid; echo started; wait"
    for seconds in limits(0.5):
        hurried = replace(context, shell_timeout_seconds=seconds)
        result = await ShellTool().run(ShellParams(command=command), hurried)
        assert result.is_error
        if "started" in result.model_text:
            break

    assert result.model_text.startswith(f"started\nstopped: not done after {seconds:g} seconds.")
    assert not is_running(int((workspace / "pid").read_text(encoding="utf-8")))


async def test_a_timeout_given_by_the_model_counts(shell):
    assert "after 1 seconds" in (await shell("sleep 600", timeout=1)).model_text


async def test_cancelling_ends_the_whole_group(tool: ShellTool, context: ToolContext, workspace: Path):
    started = asyncio.Event()
    watching = replace(context, emit=lambda text: started.set())
    command = "sleep 600 & echo $! > pid; echo started; wait"
    task = asyncio.create_task(tool.run(ShellParams(command=command), watching))
    await started.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not is_running(int((workspace / "pid").read_text(encoding="utf-8")))


async def test_a_command_that_ignores_the_request_to_end_is_killed(tool: ShellTool, context: ToolContext):
    printed: list[str] = []
    started = asyncio.Event()

    def emit(text: str) -> None:
        printed.append(text)
        started.set()

    command = "trap '' TERM; echo $$; while :; do sleep 1; done"
    task = asyncio.create_task(tool.run(ShellParams(command=command), replace(context, emit=emit)))
    await started.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not is_running(int(printed[0]))


async def test_short_output_is_not_put_aside(shell, context: ToolContext):
    await shell("seq 100")

    assert not context.spill_folder.exists()


async def test_long_output_keeps_both_ends_and_names_the_file_with_all_of_it(shell, context: ToolContext):
    result = await shell("seq 100000; echo '2 failed'; exit 1")

    (spilled,) = context.spill_folder.iterdir()
    lines = result.model_text.split("\n")
    everything = "".join(f"{number}\n" for number in range(1, 100_001)) + "2 failed\n"
    assert spilled.read_text(encoding="utf-8") == everything
    assert lines[:3] == ["1", "2", "3"]
    assert lines[-2:] == ["2 failed", "exit code 1"]
    (cut,) = [line for line in lines if "left out" in line]
    assert cut.endswith(f"bytes left out; all of it is in {spilled} ...]")
    assert len(result.model_text) < 8500


async def test_the_last_line_is_visible_even_if_it_alone_is_too_long(shell):
    result = await shell("head -c 100000 /dev/zero | tr '\\0' x; printf END")

    assert result.model_text.endswith("xEND\nexit code 0")


async def test_output_that_cannot_be_put_aside_is_still_shown(context: ToolContext, tmp_path: Path):
    (tmp_path / "file").touch()
    blocked = replace(context, spill_folder=tmp_path / "file")

    result = await ShellTool().run(ShellParams(command="seq 10000"), blocked)

    assert "bytes left out ...]" in result.model_text
    assert result.model_text.endswith("10000\nexit code 0")


async def test_colours_and_progress_bars_are_reduced_to_text(shell):
    result = await shell(r"printf '\033[31mred\033[0m\n10%%\r50%%\r100%%\r\nend\0\n'")

    assert result.model_text == "red\n100%\nend\nexit code 0"


async def test_bytes_that_are_no_text_do_no_harm(shell):
    assert (await shell(r"printf 'a\377b\n'")).model_text == "a\ufffdb\nexit code 0"


@pytest.mark.parametrize("command", ["", "  \n", "echo a\0b", "echo " + "x" * 200_000])
async def test_a_command_that_cannot_be_started_is_an_error(shell, command: str):
    assert (await shell(command)).is_error


async def test_a_workspace_that_is_gone_is_an_error(shell, workspace: Path):
    workspace.rmdir()

    result = await shell("ls")

    assert result.is_error
    assert result.model_text == "The command was not started: no such file or directory."
