"""Ctrl-C once ends a run in order, twice at once; being asked to end is like Ctrl-C."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import AGENT, Place, ended, read_until
from tests.fakes.script import Step, call
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.timeout(300)

WRITE = call("write", path="made.txt", content="made\n")


def command_that_waits(place: Place, before: str = "") -> str:
    """A command that tells through a pipe that it runs, and then does not end by itself."""
    os.mkfifo(place.workspace / "up")
    return f"{before} echo up > up; while :; do sleep {mark(place)}; done"


def mark(place: Place) -> str:
    """Seconds that no other command here sleeps for. A process id in a sandbox would say nothing."""
    return f"600.{os.getpid()}{place.folder.stat().st_ino}"


def wait_for_command(place: Place) -> None:
    assert (place.workspace / "up").read_text("utf-8") == "up\n"


def left_of_command(place: Place) -> list[str]:
    """The command lines of the processes that it still has. What was just killed is given time to be gone."""
    until = time.monotonic() + PATIENCE_SECONDS
    while (left := _processes_of_command(place)) and time.monotonic() < until:
        time.sleep(0.02)
    return left


def _processes_of_command(place: Place) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    return [line for line in found if mark(place) in line]


def interrupt_until_it_ends(process: subprocess.Popen[str]) -> None:
    """Two signals at the same moment may arrive as one."""
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_in_mid_reply_ends_the_run_in_order(
    place: Place, scripted_server: StartServer, number: signal.Signals
):
    server = scripted_server(WRITE, {"fault": "pings"})
    place.use(server.url)
    process = place.start("run", "-p", "Write", "--output", "json")
    server.wait_for_chats(2, 240)
    process.send_signal(number)
    done = ended(process)

    assert done.code == 130
    assert (done.result["reason"], done.result["exit_code"]) == ("cancelled", 130)
    assert done.result["files_changed"] == ["made.txt"]
    assert "cancelled: interrupted" in done.err
    [session] = place.sessions()
    assert [event["type"] for event in session[-2:]] == ["turn_finished", "result"]
    assert session[-2]["reason"] == "cancelled"


def test_ctrl_c_ends_the_command_that_runs(place: Place, scripted_server: StartServer):
    place.use(scripted_server(call("shell", command=command_that_waits(place))).url)
    process = place.start("run", "-p", "Wait", "--allow", "shell")
    wait_for_command(place)
    process.send_signal(signal.SIGINT)

    assert ended(process).code == 130
    assert left_of_command(place) == []
    [session] = place.sessions()
    assert [event["outcome"] for event in session if event["type"] == "tool_finished"] == ["cancelled"]


def test_ctrl_c_ends_the_check_before_the_first_request(place: Place, scripted_server: StartServer):
    server = scripted_server()
    place.use(server.url)
    process = place.start("run", "-p", "Wait", "--check", command_that_waits(place))
    wait_for_command(place)
    process.send_signal(signal.SIGINT)
    done = ended(process)

    assert done.code == 130
    assert "cancelled: interrupted" in done.err
    assert left_of_command(place) == []
    assert server.chats == []
    assert [event["type"] for event in place.sessions()[0]] == [
        "session",
        "session_started",
        "turn_finished",
        "result",
    ]


def test_ctrl_c_again_ends_at_once_and_leaves_no_command_running(place: Place, scripted_server: StartServer):
    command = command_that_waits(place, before="trap '' TERM;")
    place.use(scripted_server(call("shell", command=command)).url)
    process = place.start("run", "-p", "Wait", "--allow", "shell")
    wait_for_command(place)
    interrupt_until_it_ends(process)
    done = ended(process)

    assert done.code == 130
    assert "turn_finished" not in [event["type"] for event in place.sessions()[0]]
    assert left_of_command(place) == []


@pytest.mark.parametrize("sandbox", ["auto", "off"])
@pytest.mark.parametrize("background", [False, True])
def test_a_run_that_is_killed_leaves_no_command_running_and_the_next_removes_its_sandbox(
    place: Place, scripted_server: StartServer, sandbox: str, background: bool
):
    (place.folder / "tmp").mkdir()
    place.variables |= {"AGENT_SANDBOX_MODE": sandbox, "TMPDIR": str(place.folder / "tmp")}
    command = command_that_waits(place, before="trap '' TERM HUP;")
    server = scripted_server(call("shell", command=command, background=background), {"fault": "pings"})
    place.use(server.url)
    process = place.start("run", "-p", "Wait", "--allow", "shell")
    wait_for_command(place)
    process.kill()
    process.communicate()
    assert left_of_command(place) == []

    left = list((place.folder / "tmp").glob("agent-sandbox-*"))
    place.use(scripted_server(call("shell", command="true"), "Done.").url)
    assert place.run("run", "-p", "Go", "--allow", "shell").code == 0
    assert [path for path in left if path.exists()] == []


def test_ctrl_c_again_ends_a_run_whose_reader_does_not_read(place: Place, scripted_server: StartServer):
    server = scripted_server({"fault": "endless", "text": " ".join(str(number) for number in range(9999))})
    place.use(server.url)
    reading, writing = os.pipe()
    process = place.start("run", "-p", "Talk", "--output", "jsonl", stdout=writing)
    os.close(writing)
    server.wait_for_chats(1, 240)
    interrupt_until_it_ends(process)
    os.close(reading)
    assert ended(process).code == 130


def test_ctrl_c_while_a_server_loads_its_model_ends_the_wait(place: Place, scripted_server: StartServer):
    place.use(scripted_server(loading=10**9).url)
    process = place.start("run", "-p", "Hello", "--output", "jsonl")
    read_until(process, "server_state")
    process.send_signal(signal.SIGINT)
    done = ended(process)

    assert (done.code, done.result["error"]) == (130, "interrupted")
    assert done.err == "agent: interrupted\n"


def test_run_in_the_background_of_a_script_is_not_interrupted_by_ctrl_c(
    place: Place, scripted_server: StartServer
):
    processes: list[subprocess.Popen[str]] = []

    def interrupt(_: Any) -> Step:
        processes[0].send_signal(signal.SIGINT)
        return call("finish", answer="Undisturbed.")

    place.use(scripted_server(interrupt).url)
    deaf = ("sh", "-c", """trap '' INT; exec "$@" """, "sh", *AGENT)
    processes.append(place.start("run", "-p", "Hello", program=deaf))
    done = ended(processes[0])

    assert (done.code, done.out) == (0, "Undisturbed.\n")
