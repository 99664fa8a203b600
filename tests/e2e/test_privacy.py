"""Private and local: no name is looked up, nothing is written elsewhere, and keys stay where they are."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.fakes.script import Step, call

pytestmark = pytest.mark.timeout(300)

KEY = "sk-quite-a-secret-0123456789"
WORK = (
    call("shell", command="env; echo changed >> by-shell.txt"),
    call("write", path="made.txt", content="made\n"),
    call("search", pattern="made"),
    call("finish", answer="Done."),
)
# Runs the command as `python -m agent` does, and notes what it looks up, connects to and changes on disk.
WATCHED = """
import json, os, runpy, sys

noted = []

def note_paths(paths):
    for path in paths:
        if not isinstance(path, int):
            noted.append(["write", os.path.abspath(os.fsdecode(path))])

ONE_PATH = {"os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate"}
TWO_PATHS = {"os.rename", "os.link", "os.symlink"}

def watch(event, arguments):
    if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        note_paths(arguments[:1])
    elif event in ONE_PATH:
        note_paths(arguments[:1])
    elif event in TWO_PATHS:
        note_paths(arguments[:2])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        noted.append(["look up", str(arguments[0])])
    elif event == "socket.getnameinfo":
        noted.append(["look up", str(arguments[0][0])])
    elif event == "socket.connect":
        noted.append(["connect", str(arguments[1])])

sys.addaudithook(watch)
sys.argv[0] = "agent"
try:
    runpy.run_module("agent", run_name="__main__", alter_sys=False)
finally:
    with os.fdopen(os.dup(int(os.environ["NOTES"])), "w") as file:
        json.dump(noted, file)
"""


def watched_run(place: Place, *arguments: str) -> list[tuple[str, str]]:
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as notes:
        process = place.start(
            *arguments,
            program=(sys.executable, "-B", "-c", WATCHED),
            environment={"NOTES": str(writing)},
            pass_fds=[writing],
        )
        os.close(writing)
        noted = [(kind, what) for kind, what in json.load(notes)]
        out, err = process.communicate(timeout=240)
    assert process.returncode == 0, out + err
    return noted


def test_a_run_looks_up_no_name_and_reaches_nothing_but_its_server(
    place: Place, scripted_server: StartServer
):
    server = scripted_server(*WORK)
    place.use(server.url)
    noted = watched_run(place, "run", "-p", "Work", "--allow", "shell", "--check", "test -f made.txt")
    assert {what for kind, what in noted if kind == "look up"} <= {"127.0.0.1"}
    assert {what for kind, what in noted if kind == "connect"} == {str(("127.0.0.1", server.port))}


def test_a_run_writes_nowhere_but_to_its_workspace_and_the_state_folder(
    place: Place, scripted_server: StartServer
):
    place.use(scripted_server(*WORK).url)
    # The sandbox is tried out once, and gives commands a folder for temporary files; nothing of it stays.
    temporary = place.folder / "tmp"
    temporary.mkdir()
    place.variables["TMPDIR"] = str(temporary)
    noted = watched_run(place, "run", "-p", "Work", "--allow", "shell", "--check", "test -f made.txt")
    written = {Path(what) for kind, what in noted if kind == "write"} - {Path(os.devnull)}
    folders = (place.workspace, place.state, temporary)
    elsewhere = [path for path in written if not any(path.is_relative_to(folder) for folder in folders)]
    assert place.workspace / "made.txt" in written
    assert elsewhere == []
    assert {path.name for path in place.folder.iterdir()} == {"work", "state", "tmp"}
    assert list(temporary.iterdir()) == []


def test_the_key_of_a_server_is_sent_to_it_and_shows_up_nowhere(place: Place, scripted_server: StartServer):
    server = scripted_server(*WORK[:3], Step(text=f"The key is {KEY}, is it not?"), api_key=KEY)
    place.use(server.url)
    place.variables |= {"AGENT_SERVER_API_KEY_ENV": "MY_LLAMA", "MY_LLAMA": KEY}
    done = place.run("run", "-p", f"Do not tell {KEY}", "--allow", "shell", "--output", "jsonl")
    stored = [path for path in place.state.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    environment = next(record["text"] for record in done.records if record["type"] == "tool_finished")

    assert done.code == 0
    assert server.chats[0].headers["Authorization"] == f"Bearer {KEY}"
    assert "PATH=" in environment
    assert KEY not in environment
    assert stored == []


@pytest.mark.parametrize(
    ("variables", "error", "code"),
    [
        ({}, "the variable MY_LLAMA, which holds the server's key, is not set", 2),
        (
            {"MY_LLAMA": "wrong\nkey"},
            "the key in the variable MY_LLAMA has characters that cannot be sent",
            2,
        ),
        ({"MY_LLAMA": "wrong-key"}, "does not accept the key (HTTP 401 or 403)", 5),
    ],
)
def test_a_key_that_does_not_fit_is_explained_and_not_shown(
    place: Place, scripted_server: StartServer, variables: dict[str, str], error: str, code: int
):
    place.use(scripted_server(api_key=KEY).url)
    place.variables |= {"AGENT_SERVER_API_KEY_ENV": "MY_LLAMA", **variables}
    done = place.run("run", "-p", "Work")
    assert done.code == code
    assert error in done.err
    assert "wrong" not in done.err
