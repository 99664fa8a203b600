"""Answering the questions of the permission gate, in a real terminal."""

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.e2e.terminal.conftest import OpenTerminal, said
from tests.e2e.terminal.rig import ENTER, ESCAPE, Terminal
from tests.fakes.script import Step, call

pytestmark = pytest.mark.timeout(180)


def touch(name: str) -> Step:
    return call("shell", command=f"mkdir {name}")


def ask_for(screen: Terminal, task: str, name: str) -> None:
    """Sends a task and waits for the question about `mkdir NAME`."""
    screen.say(task)
    screen.until(lambda: screen.is_asking and f"mkdir {name}" in screen.text)


def test_yes_once_runs_it_and_asks_again_the_next_time(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server(touch("one"), touch("one"), "All made.").url)
    screen = terminal()
    screen.until_ready()
    ask_for(screen, "Make it", "one")
    assert not (place.workspace / "one").exists()
    screen.answer("1")
    screen.until(lambda: (place.workspace / "one").is_dir() and screen.is_asking)
    screen.press(ESCAPE)
    screen.until("interrupted")


def test_yes_for_the_session_asks_no_more_in_it_and_again_in_the_next(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server(touch("one"), touch("one"), "All made.", touch("one")).url)
    screen = terminal()
    screen.until_ready()
    ask_for(screen, "Make it", "one")
    screen.answer("2")
    screen.until("All made.")
    assert screen.quit() == 0

    other = terminal()
    other.until_ready()
    ask_for(other, "Once more", "one")


def test_yes_for_good_holds_in_the_next_session(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server(touch("one"), "First made.", touch("one"), "Second made.").url)
    screen = terminal()
    screen.until_ready()
    ask_for(screen, "Make it", "one")
    screen.answer("3")
    screen.until("First made.")
    assert screen.quit() == 0

    other = terminal()
    other.until_ready()
    other.say("Once more")
    other.until("Second made.")


def test_a_no_reaches_the_model_with_its_reason(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server(touch("one"), "Then not.")
    place.use(server.url)
    screen = terminal()
    screen.until_ready()
    ask_for(screen, "Make it", "one")
    screen.answer("4")
    screen.until("Enter denies")
    screen.press("it is there already")
    screen.until("it is there already")
    screen.press(ENTER)
    screen.until("Then not.")
    assert not (place.workspace / "one").exists()
    assert "it is there already" in said(server.chats[1], "tool")[0]


def test_an_edit_is_shown_as_a_diff_before_it_is_made(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.write("greet.py", "print('hello')\n")
    change = call("edit", path="greet.py", old="print('hello')", new="print('good day')")
    place.use(scripted_server(call("read", path="greet.py"), change, "Changed.").url)
    screen = terminal()
    screen.until_ready()
    screen.say("Be polite")
    screen.until(lambda: screen.is_asking and "good day" in screen.text)
    assert (place.workspace / "greet.py").read_text("utf-8") == "print('hello')\n"
    screen.answer("1")
    screen.until("Changed.")
    assert (place.workspace / "greet.py").read_text("utf-8") == "print('good day')\n"
