"""A server that somebody else runs: what it says about itself is believed, and it may go away."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import ROOT, Place, ended, read_until
from tests.fakes.script import Step, call

pytestmark = pytest.mark.timeout(300)

FINISH = call("finish", answer="Done.")


@pytest.fixture
def server_process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A scripted server that can be killed: it writes a file, then talks without end."""
    script = tmp_path / "script.json"
    write = {"tool_calls": [{"name": "write", "arguments": {"path": "made.txt", "content": "made\n"}}]}
    talk = {"fault": "endless", "text": " ".join(str(number) for number in range(20_000))}
    script.write_text(json.dumps([write, talk]), "utf-8")
    command = [sys.executable, "-m", "tests.fakes.scripted_server", str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        yield process
        process.kill()


def test_server_killed_in_mid_stream_costs_no_work(place: Place, server_process: subprocess.Popen[str]):
    assert server_process.stdout is not None
    place.use(server_process.stdout.readline().split()[-1])
    process = place.start("run", "-p", "Write", "--output", "jsonl")
    read_until(process, "text_delta")
    os.kill(server_process.pid, signal.SIGKILL)
    done = ended(process)

    assert done.code == 5
    assert done.result["error"].endswith("does not answer")
    assert done.result["files_changed"] == ["made.txt"]
    [session] = place.sessions()
    assert [record["type"] for record in session[-2:]] == ["turn_finished", "result"]
    assert place.run("undo").code == 0
    assert not (place.workspace / "made.txt").exists()


def test_loading_server_is_waited_for_with_visible_progress(place: Place, scripted_server: StartServer):
    place.use(scripted_server(FINISH, loading=2).url)
    done = place.run("run", "-p", "Hello", "--output", "jsonl")
    states = [record["state"] for record in done.records if record["type"] == "server_state"]
    assert (done.code, states) == (0, ["loading", "loading"])


@pytest.mark.parametrize(
    ("caps", "protocol", "field"),
    [
        ({"supports_tools": True, "supports_tool_calls": True}, "native", "tools"),
        ({"supports_tools": False, "supports_tool_calls": False}, "constrained", "response_format"),
        ({}, "native", "tools"),
    ],
)
def test_tool_protocol_follows_the_chat_template_without_another_request(
    place: Place, scripted_server: StartServer, caps: dict[str, bool], protocol: str, field: str
):
    server = scripted_server(FINISH, caps=caps)
    place.use(server.url)
    done = place.run("run", "-p", "Hello", "--output", "jsonl")
    assert done.records[0]["tool_protocol"] == protocol
    assert field in server.chats[0].body
    assert [request.path for request in server.requests] == ["/health", "/props", "/v1/chat/completions"]


def test_old_sessions_go_while_the_model_works(place: Place, scripted_server: StartServer):
    def sessions() -> list[Path]:
        return list(place.state.glob("sessions/*/*/events.jsonl"))

    def wait_until_tidy(_: object) -> Step:
        pause = threading.Event()
        for _ in range(600):
            if len(sessions()) <= 200:
                return FINISH
            pause.wait(0.1)
        return Step(text="old sessions are still there", fault="http_500", times=0)

    place.use(scripted_server(FINISH, call("glob", pattern="*"), wait_until_tidy).url)
    assert place.run("run", "-p", "Hello").code == 0
    [newest] = sessions()
    for number in range(205):
        folder = newest.parents[1] / f"20200101-000000-{number:03d}-abcdef"
        folder.mkdir()
        (folder / "events.jsonl").write_text('{"type":"session"}\n', "utf-8")
    assert place.run("run", "-p", "Hello").code == 0
    assert newest.exists()
