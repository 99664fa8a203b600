"""A server that the run itself starts and looks after."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Done, Place, ended, is_running, read_until

pytestmark = pytest.mark.timeout(300)

MANAGED = (sys.executable, "-m", "tests.e2e.managed")
FAKE_CHILD = Path(__file__).parents[1] / "fakes" / "fake_embedded_child.py"
PROFILE = 'context = 8192\n[target]\nfile = "tiny.gguf"\n'
# Many different words: a reply that goes in circles would be ended.
LONG_REPLY = {"fault": "endless", "text": " ".join(str(number) for number in range(20_000))}
WRITE = {"tool_calls": [{"name": "write", "arguments": {"path": "made.txt", "content": "made\n"}}]}
# A server that was just started is asked once for a tool call.
TRIAL = {"tool_calls": [{"name": "glob", "arguments": {"pattern": "*.md"}}]}
FINISH = {"tool_calls": [{"name": "finish", "arguments": {"answer": "Done."}}]}


@pytest.fixture
def managed(place: Place) -> Iterator[Place]:
    """A place with a profile `mine` whose model file is there; the engine is still to be chosen."""
    place.profile("mine", PROFILE)
    models = place.folder / "data" / "models"
    models.mkdir(parents=True)
    (models / "tiny.gguf").write_bytes(b"GGUF")
    place.variables["AGENT_PROFILE"] = "mine"
    yield place
    for record in server_records(place):
        with contextlib.suppress(ProcessLookupError):
            os.kill(record["pid"], signal.SIGKILL)


def use_script(place: Place, *steps: dict[str, Any]) -> None:
    script = place.folder / "script.json"
    script.write_text(json.dumps([TRIAL, *steps]), "utf-8")
    use_engine(place, "-m", "tests.e2e.scripted_engine", str(script))


def use_engine(place: Place, *arguments: str) -> None:
    place.variables["ENGINE"] = json.dumps([sys.executable, *arguments])


def start(place: Place, *arguments: str) -> subprocess.Popen[str]:
    return place.start(*arguments, program=MANAGED)


def run(place: Place, *arguments: str, environment: Mapping[str, str] | None = None) -> Done:
    return place.run(*arguments, program=MANAGED, environment=environment)


def server_records(place: Place) -> Sequence[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in place.state.glob("run/*.record.json")]


def test_server_is_started_with_visible_progress_and_kept_for_the_next_run(managed: Place):
    use_script(managed, FINISH, FINISH, FINISH)
    first = run(managed, "-p", "Hello", "--output", "jsonl")
    [record] = server_records(managed)
    second = run(managed, "-p", "Hello", "--output", "jsonl")
    third = run(managed, "-p", "Hello", environment={"AGENT_SERVER_REUSE": "false"})

    assert (first.code, second.code, third.code) == (0, 0, 0)
    assert {event["state"] for event in first.records if event["type"] == "server_state"} >= {
        "starting",
        "ready",
    }
    assert "server_state" not in [event["type"] for event in second.records]
    assert [found["pid"] for found in server_records(managed)] == [record["pid"]]


def test_server_of_this_run_is_stopped_at_its_end_when_it_is_not_to_be_reused(managed: Place):
    use_script(managed, FINISH)
    process = managed.start(
        "-p", "Hello", "--output", "jsonl", program=MANAGED, environment={"AGENT_SERVER_REUSE": "false"}
    )
    read_until(process, "session_started")
    [record] = server_records(managed)

    assert ended(process).code == 0
    assert server_records(managed) == []
    assert not is_running(record["pid"])


def kill_server(place: Place) -> int:
    [record] = server_records(place)
    os.kill(record["pid"], signal.SIGKILL)
    return record["pid"]


def test_server_killed_in_mid_stream_is_started_again_and_the_turn_goes_on(managed: Place):
    use_script(managed, WRITE, LONG_REPLY)
    process = start(managed, "-p", "Write", "--output", "jsonl")
    read_until(process, "text_delta")
    (managed.folder / "script.json").write_text(json.dumps([FINISH]), "utf-8")
    killed = kill_server(managed)
    done = ended(process)

    assert done.code == 0
    assert done.result["files_changed"] == ["made.txt"]
    assert [event["cause"] for event in done.records if event["type"] == "retry"] == [
        "the server was started again"
    ]
    notices = [event["text"] for event in done.records if event["type"] == "notice"]
    [notice] = [text for text in notices if text.startswith("the server of profile 'mine' is gone")]
    assert notice.startswith("the server of profile 'mine' is gone: it was killed")
    [record] = server_records(managed)
    assert record["pid"] != killed


def test_server_killed_twice_is_explained_and_the_work_kept(managed: Place):
    use_script(managed, WRITE, LONG_REPLY)
    process = start(managed, "-p", "Write", "--output", "jsonl")
    read_until(process, "text_delta")
    (managed.folder / "script.json").write_text(json.dumps([LONG_REPLY]), "utf-8")
    kill_server(managed)
    read_until(process, "retry")
    read_until(process, "text_delta")
    kill_server(managed)
    done = ended(process)

    assert done.code == 5
    assert done.result["reason"] == "server_failed"
    assert done.result["error"].startswith("the server of profile 'mine' is gone: it was killed")
    assert done.result["files_changed"] == ["made.txt"]
    assert (managed.workspace / "made.txt").exists()
    [session] = managed.sessions()
    assert [event["type"] for event in session[-2:]] == ["turn_finished", "result"]


def test_ctrl_c_while_the_server_starts_stops_it_too(managed: Place):
    journal = managed.folder / "journal"
    use_engine(managed, str(FAKE_CHILD), "--never-healthy", "--journal", str(journal))
    process = start(managed, "-p", "Hello", "--output", "jsonl")
    read_until(process, "server_state")
    while not journal.exists() or not journal.read_text("utf-8"):
        read_until(process, "server_state")
    process.send_signal(signal.SIGINT)
    done = ended(process)

    assert (done.code, done.result["exit_code"], done.result["error"]) == (130, 130, "interrupted")
    assert not is_running(int(journal.read_text("utf-8")))
    assert server_records(managed) == []


def test_server_that_never_becomes_healthy_is_given_up_and_stopped(managed: Place):
    journal = managed.folder / "journal"
    use_engine(managed, str(FAKE_CHILD), "--never-healthy", "--journal", str(journal))
    done = run(managed, "-p", "Hello", environment={"AGENT_SERVER_START_SECONDS": "2"})

    assert done.code == 5
    assert "agent: the server of profile 'mine' was not ready after 2 s" in done.err
    assert "server.start_seconds" in done.err
    assert server_records(managed) == []
    # On a busy machine it may have been stopped before it came to anything.
    assert not journal.exists() or not is_running(int(journal.read_text("utf-8")))


def test_seconds_of_a_run_include_the_start_of_its_server(managed: Place):
    use_engine(managed, str(FAKE_CHILD), "--never-healthy")
    done = run(managed, "-p", "Hello", "--max-seconds", "2", "--output", "json")
    assert (done.code, done.result["exit_code"]) == (3, 3)
    assert server_records(managed) == []


def test_server_that_dies_while_it_starts_is_explained(managed: Place):
    use_engine(managed, str(FAKE_CHILD), "--die", "failed to allocate buffer of size 99")
    done = run(managed, "-p", "Hello")
    assert done.code == 5
    assert "agent: the server of profile 'mine' failed: not enough memory: srv" in done.err
    assert "hint: lower `context`" in done.err
