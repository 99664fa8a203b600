"""Runs on a disk that takes no more, and on one that takes nothing."""

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import AGENT, Place
from tests.e2e.disks import SMALL_FILES, afterwards, frozen, full, thawed
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

FINISH = call("finish", answer="Done.")
LONG = "".join(f"line {number}\n" for number in range(2_000))


def test_a_disk_that_takes_no_more_ends_the_record_and_not_the_work(
    place: Place, scripted_server: StartServer
):
    (place.workspace / "long.txt").write_text("line\n" * 300, "utf-8")
    place.use(scripted_server(call("read", path="long.txt"), call("read", path="long.txt"), "Done.").url)
    done = place.run("run", "-p", "Work", "--output", "json", program=(*SMALL_FILES, *AGENT))
    assert done.code == 0, done.err
    assert "no longer recorded completely" in done.err
    assert place.run("session", "list").code == 0
    place.use(scripted_server("On.").url)
    again = place.run("run", "--continue", "-p", "Go on", "--output", "json")
    assert again.code == 0, again.err


def test_an_edit_that_does_not_fit_leaves_the_file_as_it_was(place: Place, scripted_server: StartServer):
    place.write("long.txt", LONG)
    server = scripted_server(
        call("read", path="long.txt"),
        call("edit", path="long.txt", old="line 7\n", new="line seven\n"),
        FINISH,
    )
    place.use(server.url)
    done = place.run("run", "-p", "Edit", "--output", "json", program=full(place, place.workspace))
    left = afterwards(place.workspace)
    assert (left / "long.txt").read_text("utf-8") == LONG
    assert {path.name for path in left.iterdir()} <= {"long.txt"}, "a half-written file is left"
    told = [message["content"] for message in server.chats[2].body["messages"] if message["role"] == "tool"]
    assert "no space left" in told[-1].lower() or "file too large" in told[-1].lower()
    assert done.result["files_changed"] == []


def test_an_original_that_cannot_be_kept_keeps_the_file_from_being_changed(
    place: Place, scripted_server: StartServer
):
    place.write("long.txt", LONG)
    place.use(scripted_server(call("edit", path="long.txt", old="line 7\n", new="line seven\n"), FINISH).url)
    place.state.mkdir()
    place.run("run", "-p", "Edit", "--output", "json", program=full(place, place.state))
    assert (place.workspace / "long.txt").read_text("utf-8") == LONG


def test_settings_that_do_not_fit_stay_as_they_were(place: Place):
    place.config.mkdir()
    before = "[limits]\nmax_steps = 7\n" + "# a remark\n" * 800
    (place.config / "config.toml").write_text(before, "utf-8")
    done = place.run("config", "set", "limits.max_steps", "60", program=full(place, place.config))
    left = afterwards(place.config)
    assert (left / "config.toml").read_text("utf-8") == before
    assert {path.name for path in left.iterdir()} <= {"config.toml"}
    assert done.code != 0
    assert len([line for line in done.err.splitlines() if not line.startswith("hint: ")]) == 1
    assert "config.toml" in done.err
    assert "No space left" in done.err or "File too large" in done.err


def test_output_that_cannot_be_kept_whole_is_told_with_its_beginning_and_end(
    place: Place, scripted_server: StartServer
):
    server = scripted_server(call("shell", command="seq 100000"), FINISH)
    place.use(server.url)
    place.state.mkdir()
    done = place.run("run", "-p", "Count", "--allow", "shell(seq *)", program=full(place, place.state))
    told = [message["content"] for message in server.chats[1].body["messages"] if message["role"] == "tool"]
    assert told[0].startswith("1\n2\n3\n")
    assert "\n100000\n" in told[0]
    assert done.code == 0
    assert "no longer recorded completely" in done.err


def test_a_state_folder_that_takes_nothing_is_said_in_one_line_before_anything_begins(
    place: Place, scripted_server: StartServer
):
    server = scripted_server(FINISH)
    place.use(server.url)
    place.state.mkdir()
    done = place.run("run", "-p", "Hello", program=frozen(place, place.state))
    thawed(place.state)
    assert done.code == 2
    assert done.err.startswith("agent: ")
    assert str(place.state) in done.err.splitlines()[0]
    assert "AGENT_STATE_HOME" in done.err.splitlines()[1]
    assert len(done.err.splitlines()) == 2
    assert server.chats == []
