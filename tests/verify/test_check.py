"""The check command: how it ends, and that nothing of it is left behind."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest

from agent.core.cancel import InterruptedRunError, unless_cancelled
from agent.verify.check import QUICK_SECONDS, CheckCommand
from tests.patience import PATIENCE_SECONDS, limits

PYTHON = f'"{sys.executable}"'


def check(command: str, folder: Path, timeout: float = 60.0) -> CheckCommand:
    return CheckCommand(command, folder, environment=dict(os.environ), timeout_seconds=timeout)


class Alarm:
    """A pipe that a process of the check holds: it ends when the last process that has it is gone."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "alarm"
        os.mkfifo(self.path)
        self._ended = threading.Event()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        with self.path.open("rb") as pipe:
            pipe.readline()
            self._begun.set()
            pipe.read()
        self._ended.set()

    async def wait_for_begin(self) -> None:
        assert await asyncio.to_thread(self._begun.wait, PATIENCE_SECONDS)

    async def all_are_gone(self) -> bool:
        with contextlib.suppress(OSError):  # nobody may have come so far as to open it
            os.close(os.open(self.path, os.O_WRONLY | os.O_NONBLOCK))
        gone = await asyncio.to_thread(self._ended.wait, PATIENCE_SECONDS)
        self._thread.join()
        return gone


async def test_a_command_that_exits_with_0_passes(tmp_path: Path):
    verdict = await check("echo fine", tmp_path).run()
    assert verdict.passed
    assert verdict.feedback == "The check `echo fine` passes now."
    assert (verdict.event.command, verdict.event.passed, verdict.event.text) == ("echo fine", True, "")


async def test_a_failing_command_shows_what_it_said_and_how_it_ended(tmp_path: Path):
    verdict = await check("echo out; echo err >&2; exit 3", tmp_path).run()
    assert not verdict.passed
    assert verdict.event.text == "out\nerr"
    assert verdict.feedback.endswith("fails (exit code 3):\n```\nout\nerr\n```")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("exit 1", "fails (exit code 1) without any output."),
        ("kill -SEGV $$", "fails (killed by signal 11) without any output."),
        ("no-such-program-anywhere", "fails (exit code 127):\n```\n"),
    ],
)
async def test_a_failure_without_words_is_worded(tmp_path: Path, command: str, words: str):
    assert words in (await check(command, tmp_path).run()).feedback


async def test_the_check_runs_in_its_folder_with_the_given_environment(tmp_path: Path):
    environment = {"PATH": os.environ["PATH"], "ONLY": "this"}
    command = CheckCommand(
        "pwd; env | grep -c ONLY; env | grep -c HOME; exit 1",
        tmp_path,
        environment=environment,
        timeout_seconds=20,
    )
    assert (await command.run()).event.text == f"{tmp_path}\n1\n0"


async def test_a_check_that_reads_its_input_finds_none(tmp_path: Path):
    assert (await check('cat && read x; test -z "$x"', tmp_path).run()).passed


async def test_the_time_limit_kills_the_whole_group(tmp_path: Path):
    for seconds in limits(1.0):
        (folder := tmp_path / f"{seconds:g}").mkdir()
        alarm = Alarm(folder)
        # A shell that starts a shell that starts a process, all of which ignore polite signals.
        inner = f"trap '' TERM INT; exec 9>{alarm.path}; echo here >&9; echo working; sleep 1000; true"
        command = f"trap '' TERM INT; sh -c \"{inner}\"; true"

        verdict = await check(command, folder, timeout=seconds).run()

        assert not verdict.passed
        assert await alarm.all_are_gone()
        if "working" in verdict.event.text:
            break
    assert f"did not end within {seconds:g} s:\n```\nworking" in verdict.feedback


async def test_a_child_in_the_background_neither_hangs_the_check_nor_survives_it(tmp_path: Path):
    alarm = Alarm(tmp_path)
    command = f"(exec 9>{alarm.path}; echo here >&9; sleep 1000) & while ! test -e ready; do ls > ready; done"

    verdict = await check(command, tmp_path).run()

    assert verdict.passed
    assert await alarm.all_are_gone()


def script(folder: Path, text: str) -> str:
    """The command that runs a Python program."""
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    return f"{PYTHON} {path}"


async def test_a_child_that_left_the_group_is_not_waited_for(tmp_path: Path):
    away = script(
        tmp_path,
        "import os, pathlib, time\n"
        "os.setsid()\n"
        "pathlib.Path('new').write_text(str(os.getpid()))\n"
        "os.rename('new', 'pid')\n"
        "time.sleep(1000)\n",
    )
    command = f"echo said; {away} & while ! test -e pid; do sleep 0.05; done; exit 1"

    verdict = await check(command, tmp_path).run()

    assert verdict.event.text == "said"
    os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)


@pytest.mark.timeout(120)
async def test_huge_output_is_kept_at_both_ends_in_little_memory(tmp_path: Path):
    command = "echo first; yes $(printf %0500d 0) | head -c 100000000; echo; echo last; exit 1"
    tracemalloc.start()
    try:
        verdict = await check(command, tmp_path).run()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert verdict.event.text.startswith("first\n")
    assert verdict.event.text.endswith("\nlast")
    assert peak < 30_000_000


async def test_the_cut_in_long_output_does_not_join_two_lines(tmp_path: Path):
    command = script(
        tmp_path,
        "import sys\n"
        "print('=== FAILURES ===\\n____ t ____\\n>   assert x')\n"
        "print('y' * 3_000_000)\n"
        "print('E   end')\n"
        "sys.exit(1)\n",
    )
    text = (await check(command, tmp_path).run()).event.text
    assert text.startswith("FAILED t\n>   assert x\n")
    assert text.endswith("\nE   end")
    assert len(text) < 1000


async def test_output_that_is_no_text_is_readable(tmp_path: Path):
    verdict = await check("printf 'caf\\351\\000\\n'; exit 1", tmp_path).run()
    assert verdict.event.text == "caf\ufffd\x00"


async def test_a_cancel_kills_the_check(tmp_path: Path):
    alarm = Alarm(tmp_path)
    cancel = asyncio.Event()
    command = check(f"exec 9>{alarm.path}; echo here >&9; sleep 1000; true", tmp_path)

    running = asyncio.ensure_future(unless_cancelled(command.run(), cancel))
    await alarm.wait_for_begin()
    cancel.set()

    with pytest.raises(InterruptedRunError):
        await running
    assert await alarm.all_are_gone()


async def test_no_open_file_is_left_behind(tmp_path: Path):
    await check("true", tmp_path).run()
    before = set(Path("/dev/fd").iterdir())
    for command in ("true", "false", "sleep 1000"):
        with contextlib.suppress(TimeoutError):
            await check(command, tmp_path, timeout=0.2).run()
    assert set(Path("/dev/fd").iterdir()) == before


async def test_a_slow_check_is_kept_for_the_end(tmp_path: Path):
    seconds = iter([0.0, QUICK_SECONDS + 1, 100.0, 101.0])
    command = CheckCommand("true", tmp_path, environment={}, timeout_seconds=5, clock=lambda: next(seconds))
    assert (await command.run()).event.seconds == QUICK_SECONDS + 1
    assert await command.after_change() is None
    assert (await command.at_finish()) is not None


async def test_a_command_that_is_not_there_cannot_start(tmp_path: Path):
    verdict = await check("no-such-program-anywhere", tmp_path).run()
    assert "no-such-program-anywhere" in verdict.cannot_start
    assert not (await check("exit 127", tmp_path).run()).cannot_start
