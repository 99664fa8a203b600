"""How the interface ends, and what it leaves behind: a terminal as it was, no process, no lost text."""

import os
import select
import signal
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.e2e.terminal.conftest import OpenTerminal, said
from tests.e2e.terminal.rig import ALT_ENTER, CONTROL_C, CONTROL_D, ENTER, Terminal
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(180)


def end_of_the_pipe(gate: Path, screen: Terminal) -> int:
    """The end for writing, as soon as a command of the model reads at the other."""
    found: list[int] = []

    def is_read() -> bool:
        try:
            found.append(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    screen.until(is_read)
    return found[0]


@pytest.mark.parametrize("keys", [("/quit", ENTER), (CONTROL_D,), (CONTROL_C, CONTROL_C)])
def test_leaving_gives_the_terminal_back_and_says_how_to_go_on(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal, keys: tuple[str, ...]
):
    place.use(scripted_server("Hello.").url)
    screen = terminal()
    screen.until_ready()
    assert not screen.is_restored
    screen.say("Hi")
    screen.until("Hello.")
    screen.press(*keys)
    assert screen.wait_for_end() == 0
    assert screen.is_restored
    assert b"agent --resume " in screen.raw.rpartition(b"\x1b")[2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_asked_to_end_leaves_in_order(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal, number: signal.Signals
):
    place.use(scripted_server({"fault": "pings", "text": "Let me think"}).url)
    screen = terminal()
    screen.until_ready()
    screen.say("Hi")
    screen.until("Let me think")
    screen.say("And then", key=ALT_ENTER)
    screen.until(lambda: "And then" in screen.text and not screen.prompt)
    screen.type("half a tho")
    os.kill(screen.pid, number)
    assert screen.wait_for_end() == 0
    assert screen.is_restored
    assert [event["type"] for event in place.sessions()[0]].count("turn_finished") == 1

    other = terminal("--continue")
    other.until(lambda: other.prompt == "And then\nhalf a tho")


def test_a_killed_program_gives_back_what_was_queued(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server({"fault": "pings", "text": "Let me think"}).url)
    screen = terminal()
    screen.until_ready()
    screen.say("Hi")
    screen.until("Let me think")
    screen.say("And then", key=ALT_ENTER)
    screen.until(lambda: list(place.state.glob("ui/*/draft-*.json")))
    screen.kill()

    other = terminal("--continue")
    other.until(lambda: other.prompt == "And then")


def test_what_was_queued_and_sent_after_all_is_not_given_back(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    os.mkfifo(place.workspace / "gate")
    place.use(scripted_server(call("shell", command="cat gate"), "First.", "Second.").url)
    screen = terminal("--mode", "auto")
    screen.until_ready()
    screen.say("Wait")
    pipe = end_of_the_pipe(place.workspace / "gate", screen)
    screen.say("And then", key=ALT_ENTER)
    screen.until(lambda: list(place.state.glob("ui/*/draft-*.json")))
    os.close(pipe)
    screen.until("Second.")
    screen.until(lambda: not list(place.state.glob("ui/*/draft-*.json")))


def test_a_closed_terminal_ends_the_program_and_the_command_of_the_model(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    os.mkfifo(place.workspace / "gate")
    place.use(scripted_server(call("shell", command="cat gate")).url)
    screen = terminal("--mode", "auto")
    screen.until_ready()
    screen.say("Wait")
    pipe = end_of_the_pipe(place.workspace / "gate", screen)
    screen.hang_up()
    nobody_reads = select.poll()
    nobody_reads.register(pipe, 0)
    assert nobody_reads.poll(60_000)
    os.close(pipe)


def test_a_killed_program_goes_on_with_its_conversation_and_what_was_typed(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server("A fine day.", "Where were we?")
    place.use(server.url)
    screen = terminal()
    screen.until_ready()
    screen.say("Good morning")
    screen.until("A fine day.")
    screen.type("not sent yet")
    screen.until(lambda: list(place.state.glob("ui/*/draft-*.json")))
    screen.kill()

    other = terminal("--continue")
    other.until("A fine day.")
    other.until(lambda: other.prompt == "not sent yet")
    assert "Good morning" in other.text
    other.press(ENTER)
    other.until("Where were we?")
    assert "Good morning" in said(server.chats[1])[0]


def test_a_session_is_resumed_by_its_id_with_the_command_for_sessions(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server("A fine day.", "Another one.", "Where were we?")
    place.use(server.url)
    assert place.run("run", "-p", "Good morning").code == 0
    assert place.run("run", "-p", "Good night").code == 0
    listed = place.run("session", "list").out.splitlines()
    [first] = [line.split()[0] for line in listed if line.endswith("Good morning")]

    screen = terminal("session", "resume", first)
    screen.until("A fine day.")
    assert "Good night" not in screen.text
    screen.until_ready()
    screen.say("Go on")
    screen.until("Where were we?")
    assert "Good morning" in said(server.chats[2])[0]


def test_a_session_is_chosen_where_no_id_is_given(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server("A fine day.", "Another one.", "Where were we?")
    place.use(server.url)
    assert place.run("run", "-p", "Good morning").code == 0
    assert place.run("run", "-p", "Good night").code == 0

    screen = terminal("--resume")
    screen.until("Resume a session")
    screen.press("Good mor")
    screen.until(lambda: "Good night" not in screen.text)
    screen.press(ENTER)
    screen.until("A fine day.")
    screen.until_ready()
    screen.say("Go on")
    screen.until("Where were we?")
    assert "Good morning" in said(server.chats[2])[0]


def test_the_session_that_is_open_is_none_to_choose(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server("Hello.").url)
    screen = terminal("--resume")
    screen.until("No earlier session of this folder is recorded.")
    assert "Resume a session" not in screen.text


def test_a_session_in_which_nothing_was_said_is_not_offered_to_go_on_with(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server("Hello.").url)
    screen = terminal()
    screen.until_ready()
    screen.press(CONTROL_D)
    assert screen.wait_for_end() == 0
    assert b"agent --resume" not in screen.raw


def test_a_session_that_is_not_there_is_told_in_the_shell(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server("Hello.").url)
    screen = terminal("--resume", "20990101-000000-000-aaaaaa")
    assert screen.wait_for_end() == 2
    assert b"no session '20990101-000000-000-aaaaaa'" in screen.raw
    assert b"hint: " in screen.raw
