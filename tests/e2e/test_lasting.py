"""What other programs lose sessions by: a power cut, odd characters, much text, a lock left behind."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.fakes.script import call
from tests.fakes.scripted_server import ScriptedServer

pytestmark = pytest.mark.timeout(300)

ODD = "one\u2028two\u2029three\x85four\x0bfive"


def record_of(place: Place) -> Path:
    [path] = place.state.glob("sessions/*/*/events.jsonl")
    return path


def asked_last(server: ScriptedServer) -> str:
    """All that the person said, as the last request has it."""
    messages = server.chats[-1].body["messages"]
    return "\n".join(str(one["content"]) for one in messages if one["role"] == "user")


@pytest.mark.parametrize(
    "tail", [b"\0" * 4096, b'{"type":"tool_fin', b'{"type":"notice"' + b"\0" * 300, b"\xff\xfe\n\n\0\n"]
)
def test_a_session_goes_on_after_a_power_cut(place: Place, scripted_server: StartServer, tail: bytes):
    server = scripted_server("One.", "Two.")
    place.use(server.url)
    assert place.run("run", "-p", "The first task").code == 0
    with record_of(place).open("ab") as file:
        file.write(tail)
    done = place.run("run", "--continue", "-p", "Go on")
    assert (done.code, done.out) == (0, "Two.\n")
    assert "The first task" in asked_last(server)
    assert place.run("session", "show").code == 0


def test_no_character_of_a_message_splits_or_changes_it(place: Place, scripted_server: StartServer):
    server = scripted_server(f"{ODD}!", "Two.")
    place.use(server.url)
    assert place.run("run", "-p", f"Say {ODD}").code == 0
    assert place.run("run", "--continue", "-p", "Go on").code == 0
    messages = server.chats[-1].body["messages"]
    assert f"Say {ODD}" in asked_last(server)
    assert f"{ODD}!" in [one["content"] for one in messages if one["role"] == "assistant"]


def test_a_very_large_session_goes_on(place: Place, scripted_server: StartServer):
    server = scripted_server("One.", "Two.")
    place.use(server.url)
    assert place.run("run", "-p", "The first task").code == 0
    with record_of(place).open("a", encoding="utf-8") as file:
        large = {"type": "notice", "text": "x" * 8_000_000, "level": "info"}
        for _ in range(4):
            file.write(json.dumps(large) + "\n")
    assert place.run("run", "--continue", "-p", "Go on").code == 0
    assert "The first task" in asked_last(server)


def test_a_lock_that_git_left_behind_hinders_neither_work_nor_undo(
    place: Place, scripted_server: StartServer
):
    place.write("kept.txt", "mine\n")
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"),
    ):
        subprocess.run(["git", *words], cwd=place.workspace, env=place.environment, check=True)
    lock = place.write(".git/index.lock", "")
    place.use(
        scripted_server(
            call("shell", command="echo changed > kept.txt"),
            call("write", path="new.txt", content="n\n"),
            "Done.",
        ).url
    )
    assert place.run("run", "-p", "Work", "--allow", "shell(*)").code == 0
    assert (place.workspace / "kept.txt").read_text("utf-8") == "changed\n"
    assert place.run("undo").code == 0
    assert (place.workspace / "kept.txt").read_text("utf-8") == "mine\n"
    assert not (place.workspace / "new.txt").exists()
    assert lock.exists()
