"""Commands end with the program that started them, also when that is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.core.lifeline import MARK, Lifeline

ROOT = Path(__file__).parents[2]
SETTING = """
import asyncio, os, sys
from pathlib import Path
from agent.core.command import Output, run_shell
from tools._process.command import Command, run_command
from tools._process.jobs import Job

async def checked(line, folder, environment):
    await run_shell(line, folder, environment, 600, out=Output(1000))

async def shell(line, folder, environment):
    await run_command(made(line, folder, environment), 600, lambda data: None)
    await asyncio.sleep(600)

async def job(line, folder, environment):
    Job(1, line, made(line, folder, environment), folder)
    await asyncio.sleep(600)

def made(line, folder, environment):
    mark = f"{os.getpid()}-x.1"
    return Command(arguments=("sh", "-c", line), folder=folder, environment=environment, mark=mark)

way = {"check": checked, "shell": shell, "job": job}[sys.argv[1]]
asyncio.run(way(sys.argv[2], Path.cwd(), dict(os.environ)))
"""
LINES = {
    "one process": "echo $$ > pids; exec sleep 601",
    "a child": "sleep 601 & echo $! > pids; wait",
    "one that left its group": "setsid sh -c 'echo $$ > pids; exec sleep 601'; true",
    # What it is told of its leader has to be there first.
    "one without the environment": "sleep 1; env -i sh -c 'echo $$ > pids; sleep 601; true'",
    "one that ignores signals": "trap '' TERM INT HUP; echo $$ > pids; while :; do sleep 1; done",
    "what went on in the background": "(echo $$ > pids; exec sleep 601) > /dev/null 2>&1 &\nsleep 0.2",
}


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def processes_with(words: str) -> list[int]:
    """Living processes with `words` among their variables."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if words.encode() in variables and state not in (b"Z", b"X"):
            found.append(int(entry.name))
    return found


def is_gone(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return True
    return state in (b"Z", b"X")


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("check", "a child"),
        ("check", "one without the environment"),
        ("shell", "one that left its group"),
        ("shell", "one that ignores signals"),
        ("shell", "what went on in the background"),
        ("job", "one process"),
    ],
)
def test_a_killed_program_leaves_no_command_behind(tmp_path: Path, way: str, kind: str):
    seen = f"AGENT_TEST_OF_LIFELINE={tmp_path}"
    program = subprocess.Popen(
        [sys.executable, "-c", SETTING, way, LINES[kind]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "AGENT_TEST_OF_LIFELINE": str(tmp_path)},
    )
    try:
        wait_until(lambda: text_of(tmp_path / "pids"))
    finally:
        program.kill()
        program.wait()
    wait_until(lambda: is_gone(int(text_of(tmp_path / "pids"))))
    wait_until(lambda: not processes_with(seen))


def test_a_command_whose_lifeline_was_released_goes_on(tmp_path: Path):
    mark = f"{os.getpid()}-released"
    lifeline = Lifeline(mark)
    command = subprocess.Popen(["sleep", "601"], env={**os.environ, MARK: mark}, start_new_session=True)
    lifeline.hold(command.pid)
    lifeline.release()
    lifeline.release()
    try:
        assert command.poll() is None
        assert processes_with(f"{MARK}={mark}") == [command.pid]
    finally:
        command.kill()
        command.wait()


def test_a_process_that_took_over_the_id_of_a_leader_is_left_alone(tmp_path: Path):
    other = subprocess.Popen(["sleep", "601"], start_new_session=True)
    lifeline = Lifeline("1-none")
    try:
        os.write(lifeline._held, b"%d 1\n" % other.pid)  # a leader of this id that began long ago
        watcher = lifeline._watcher
        assert watcher is not None
        os.close(lifeline._held)
        lifeline._held = -1
        assert watcher.wait(30) is not None
        assert other.poll() is None
    finally:
        lifeline.release()
        other.send_signal(signal.SIGKILL)
        other.wait()


def test_other_processes_with_a_similar_mark_are_left_alone(tmp_path: Path):
    other = subprocess.Popen(["sleep", "601"], env={MARK: "1-mark.12", "PATH": os.environ["PATH"]})
    lifeline = Lifeline("1-mark.1")
    try:
        watcher = lifeline._watcher
        assert watcher is not None
        os.close(lifeline._held)
        lifeline._held = -1
        assert watcher.wait(30) is not None
        assert other.poll() is None
    finally:
        lifeline.release()
        other.kill()
        other.wait()
