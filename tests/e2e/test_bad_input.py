"""Bad input: one line that says what and where, a hint that says what to do, and nothing is lost."""

import hashlib
import json
import socket
import sys

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import AGENT, Place
from tests.e2e.disks import FULL, frozen, full, thawed
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

FINISH = call("finish", answer="Done.")
WRITE = call("write", path="made.txt", content="made\n")

HUB = 'sources = [{ kind = "hub", repo = "maker/model" }]\n'


def test_task_file_that_is_binary(place: Place):
    place.write("task.md", b"\x7fELF\x02\x01\x01\x00\x00")
    done = place.run("run", "task.md")
    assert (done.code, done.out) == (2, "")
    assert done.err == "agent: task.md is not a text file\nhint: a task is Markdown in UTF-8\n"
    assert not place.state.exists()


@pytest.mark.parametrize(
    ("content", "line", "hint"),
    [
        (b"another model", "has the wrong sha256: expected 2cf24dba", "agent model pull mine"),
        (b"half a mo", "is incomplete: 9 bytes, expected 13", "agent model pull mine"),
    ],
)
def test_model_file_that_is_another_one(place: Place, content: bytes, line: str, hint: str):
    models = place.folder / "data" / "models"
    models.mkdir(parents=True)
    (models / "tiny.gguf").write_bytes(content)
    digest = hashlib.sha256(b"hello").hexdigest()
    place.profile("mine", f'[target]\nfile = "tiny.gguf"\nsha256 = "{digest}"\nbytes = 13\n{HUB}')
    done = place.run("run", "-p", "Hello", "--profile", "mine")
    assert done.code == 6
    assert f"agent: {models / 'tiny.gguf'} {line}" in done.err
    assert hint in done.err.splitlines()[-1]


def test_download_that_stopped_half_way(place: Place):
    models = place.folder / "data" / "models"
    models.mkdir(parents=True)
    digest = "0" * 64
    place.profile("mine", f'[target]\nfile = "tiny.gguf"\nsha256 = "{digest}"\nbytes = 100\n{HUB}')
    (models / "tiny.gguf.part").write_bytes(b"x" * 40)
    done = place.run("run", "-p", "Hello", "--profile", "mine")
    assert done.code == 6
    assert "is missing: only 40 of 100 bytes are there\nhint: get it with `agent model pull mine`" in done.err


def test_port_that_is_in_use(place: Place):
    models = place.folder / "data" / "models"
    models.mkdir(parents=True)
    (models / "tiny.gguf").write_bytes(b"GGUF")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        place.profile("mine", f'port = {port}\n[target]\nfile = "tiny.gguf"\n')
        place.variables["ENGINE"] = json.dumps([sys.executable, "-c", "raise SystemExit(1)"])
        done = place.run(
            "-p", "Hello", "--profile", "mine", program=(sys.executable, "-m", "tests.e2e.managed")
        )
    assert done.code == 5
    assert (
        f"agent: port {port}, which profile 'mine' asks for, is in use\nhint: stop what uses it" in done.err
    )


def test_server_that_never_loads_its_model(place: Place, scripted_server: StartServer):
    server = scripted_server(loading=10**9)
    place.use(server.url)
    done = place.run("run", "-p", "Hello", environment={"AGENT_SERVER_START_SECONDS": "0.5"})
    assert done.code == 5
    assert f"agent: the server at {server.url} was still loading its model after 0.5 s" in done.err
    assert done.err.startswith(f"server: loading {server.url} is loading its model\n")


def test_server_that_sends_no_replies(place: Place, scripted_server: StartServer):
    place.use(scripted_server({"fault": "garbage", "times": 0}).url)
    done = place.run("run", "-p", "Hello")
    assert done.code == 5
    assert "sent something that is no reply" in done.err


def test_no_network_is_needed_for_a_server_on_this_machine(place: Place, scripted_server: StartServer):
    place.use(scripted_server(WRITE, FINISH).url)
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    assert place.run("run", "-p", "Hello", environment=dict.fromkeys(names, "http://127.0.0.1:9")).code == 0


def test_check_that_cannot_start_is_told_before_the_model_works(place: Place, scripted_server: StartServer):
    place.use(scripted_server(WRITE, FINISH).url)
    done = place.run("run", "-p", "Write", "--check", "nosuchcmd --all", "--max-steps", "2")
    warning = done.err.index("warning: the check cannot start: ")
    assert "nosuchcmd" in done.err[warning:].splitlines()[0]
    assert warning < done.err.index("• write")


def test_state_folder_that_cannot_be_written_to(place: Place, scripted_server: StartServer):
    place.use(scripted_server(FINISH).url)
    (place.folder / "file").write_text("", "utf-8")
    done = place.run(
        "run", "-p", "Hello", environment={"AGENT_STATE_HOME": str(place.folder / "file" / "state")}
    )
    assert done.code == 2
    assert done.err.startswith(f"agent: cannot start a session in {place.folder}/file/state/sessions/")
    assert "AGENT_STATE_HOME" in done.err.splitlines()[1]


@pytest.mark.parametrize(
    "words", [("run", "-p", "Hello"), ("session", "list"), ("doctor",), ("config", "show"), ("mcp", "list")]
)
def test_current_folder_that_is_gone(place: Place, words: tuple[str, ...]):
    vanishing = 'rmdir "$PWD"; exec "$@"'
    folder = place.folder / "gone"
    folder.mkdir()
    done = place.run(*words, folder=folder, program=("sh", "-c", vanishing, "sh", *AGENT))
    assert (done.code, done.err.splitlines()[0]) == (2, "agent: the current folder is gone")


def test_full_disk_costs_the_record_and_refuses_changes_that_could_not_be_undone(
    place: Place, scripted_server: StartServer
):
    place.use(scripted_server(call("edit", path="long.txt", old="line 7\n", new="x\n"), FINISH).url)
    before = "".join(f"line {number}\n" for number in range(1_000))
    place.write("long.txt", before)
    place.state.mkdir()
    done = place.run("run", "-p", "Edit", program=full(place, place.state))
    assert "warning: the session is no longer recorded completely in" in done.err
    assert any(words in done.err.lower() for words in FULL)
    assert (place.workspace / "long.txt").read_text("utf-8") == before
    assert (done.code, done.out) == (0, "Done.\n")


def test_read_only_folder_is_said_to_be_one(place: Place, scripted_server: StartServer):
    place.use(scripted_server(WRITE, FINISH).url)
    done = place.run("run", "-p", "Write", program=frozen(place, place.workspace))
    thawed(place.workspace)
    assert f"warning: the folder {place.workspace} is read-only, so nothing can be changed in it" in done.err
    assert done.code == 0
