"""The input field and its menus, in a real terminal."""

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.e2e.terminal.conftest import OpenTerminal, said
from tests.e2e.terminal.rig import (
    BACKSPACE,
    CONTROL_G,
    CONTROL_J,
    CONTROL_R,
    DOWN,
    ENTER,
    ESCAPE,
    F2,
    TAB,
    UP,
)

pytestmark = pytest.mark.timeout(180)


def test_output_of_a_shell_line_reaches_the_model_unless_it_has_two_marks(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server("I see.")
    place.use(server.url)
    screen = terminal()
    screen.until_ready()
    screen.say("!expr 40 + 2")
    screen.until("42")
    screen.say("!!expr 50 + 5")
    screen.until("55")
    screen.say("What came out")
    screen.until("I see.")
    told = "\n".join(said(server.chats[0]))
    assert "42" in told
    assert "55" not in told


def test_a_file_is_completed_and_its_text_sent(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.write("src/teapot.py", "SPOUT = 1\n")
    place.write("src/kettle.py", "SPOUT = 2\n")
    server = scripted_server("Short and stout.")
    place.use(server.url)
    screen = terminal()
    screen.until_ready()
    screen.press("See @teap")
    screen.until("▸ src/teapot.py")
    screen.press(TAB)
    screen.until(lambda: screen.prompt == "See @src/teapot.py")
    screen.press(ENTER)
    screen.until("Short and stout.")
    told = "\n".join(said(server.chats[0]))
    assert "SPOUT = 1" in told
    assert "SPOUT = 2" not in told


def test_the_command_menu_narrows_and_runs_what_is_chosen(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server().url)
    screen = terminal(size=(80, 24))
    screen.until_ready()
    screen.press("/")
    screen.until("▸ /")
    screen.press("key")
    screen.until("▸ /keys")
    screen.press(ENTER)
    screen.until(lambda: "Shift+Tab" in screen.text and "Esc closes" in screen.text)
    screen.press(ESCAPE)
    screen.until("Ask for something")
    screen.press(F2)
    screen.until("No turn has finished yet")
    screen.press(ESCAPE)
    screen.until("Ask for something")


def test_what_was_sent_is_found_again_in_the_next_session(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server("Noted.", "Noted again.")
    place.use(server.url)
    screen = terminal()
    screen.until_ready()
    screen.say("Polish the silver")
    screen.until("Noted.")
    assert screen.quit() == 0

    other = terminal()
    other.until_ready()
    other.press(UP)
    other.until(lambda: other.prompt == "/quit")
    other.press(UP)
    other.until(lambda: other.prompt == "Polish the silver")
    other.press(DOWN, DOWN)
    other.until(lambda: other.prompt == "")
    other.press(CONTROL_R)
    other.until("Type to narrow")
    other.press("silv")
    other.until(lambda: "/quit" not in other.text and "Polish the silver" in other.text)
    other.press(ENTER)
    other.until(lambda: other.prompt == "Polish the silver")
    other.press(ENTER)
    other.until("Noted again.")


def test_a_message_of_several_lines_arrives_as_it_was_written(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server("Three lines.")
    place.use(server.url)
    screen = terminal()
    screen.until_ready()
    screen.press("one", CONTROL_J, "two\\", ENTER, "drei → 三 🙂")
    screen.until(lambda: "drei" in screen.prompt)
    screen.press(ENTER)
    screen.until("Three lines.")
    assert said(server.chats[0])[-1].endswith("one\ntwo\ndrei → 三 🙂")


def test_a_long_paste_is_folded_and_sent_whole(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server("Read it.")
    place.use(server.url)
    screen = terminal()
    screen.until_ready()
    lines = "\n".join(f"line {number}" for number in range(1, 121))
    screen.press("Sum up: ")
    screen.paste(lines.replace("\n", "\r"))
    screen.until("[paste 1: 120 lines]")
    screen.paste("a\rb")
    screen.until(lambda: screen.prompt.endswith("b"))
    screen.press(BACKSPACE)
    screen.until(lambda: screen.prompt.endswith("a"))
    assert server.chats == []
    screen.press(ENTER)
    screen.until("Read it.")
    assert said(server.chats[0])[-1].endswith(f"Sum up: {lines}a\n")


def test_the_text_goes_to_the_editor_and_comes_back_with_the_screen(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server("Read.").url)
    place.write("edit.sh", 'echo "editing"; printf "%s and more" "$(cat "$1")" >"$1"\n')
    screen = terminal(environment={"VISUAL": f"sh {place.workspace / 'edit.sh'}"})
    screen.until_ready()
    screen.type("begun here")
    screen.press(CONTROL_G)
    screen.until(lambda: screen.prompt == "begun here and more")
    screen.until_ready()
    screen.press(ENTER)
    screen.until("Read.")
    screen.until("begun here and more")


def test_an_editor_that_fails_leaves_the_text_as_it_was(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server().url)
    screen = terminal(environment={"VISUAL": "false"})
    screen.until_ready()
    screen.type("begun here")
    screen.press(CONTROL_G)
    screen.until("false ended with status 1")
    screen.until(lambda: screen.prompt == "begun here")
