"""What a person does while the model works, in a real terminal."""

import os

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.e2e.terminal.conftest import OpenTerminal, recorded, said
from tests.e2e.terminal.rig import ALT_ENTER, CONTROL_C, ENTER, ESCAPE, SHIFT_TAB, Terminal
from tests.fakes.script import Step, call

pytestmark = pytest.mark.timeout(180)


def command_that_waits(place: Place) -> Step:
    """A command that ends when `let_it_end` is called."""
    os.mkfifo(place.workspace / "gate")
    return call("shell", command="cat gate")


def let_it_end(place: Place, screen: Terminal) -> None:
    def has_reader() -> bool:
        try:
            gate = os.open(place.workspace / "gate", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        os.write(gate, b"through the gate\n")
        os.close(gate)
        return True

    screen.until(has_reader)


def test_a_task_is_answered_and_the_status_bar_says_how_fast(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server("It is **well** done.").url)
    screen = terminal()
    screen.until_ready()
    screen.say("Do it well")
    screen.until("It is well done.")
    screen.until("100 tok/s")
    assert screen.text.count("Do it well") == 1
    assert screen.prompt == ""


def test_a_prompt_on_the_command_line_is_sent_already_when_the_interface_opens(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server("It is mended.", "And this one too.")
    place.use(server.url)
    first = terminal("mend the first test")
    first.until("It is mended.")
    first.until(lambda: recorded(place, "turn_finished"))
    first.press(CONTROL_C, CONTROL_C)
    first.until(lambda: first.has_ended)
    second = terminal("--continue", "now the second")
    second.until("And this one too.")
    assert [said(chat)[-1].splitlines()[-1] for chat in server.chats] == [
        "mend the first test",
        "now the second",
    ]
    told = second.text
    assert told.index("It is mended.") < told.index("now the second") < told.index("And this one too.")
    assert told.count("now the second") == 1


def test_what_is_typed_before_the_program_is_ready_is_not_lost(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server("Early bird.")
    place.use(server.url)
    screen = terminal()
    screen.until("Ask for something")
    screen.press("At once", ENTER)
    screen.until("Early bird.")
    assert said(server.chats[0])[-1].endswith("At once")


def test_enter_steers_the_turn_and_alt_enter_queues_for_after_it(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server(command_that_waits(place), "First done.", "Second done.")
    place.use(server.url)
    screen = terminal("--mode", "auto")
    screen.until_ready()
    screen.say("Begin")
    screen.until("cat gate")
    screen.say("And mind the step")
    screen.until("And mind the step")
    screen.say("Then sweep", key=ALT_ENTER)
    screen.until("Then sweep")
    assert len(server.chats) == 1, screen.text
    let_it_end(place, screen)
    screen.until("Second done.")

    asked, steered, queued = (said(request) for request in server.chats)
    assert [len(asked), len(steered), len(queued)] == [1, 2, 3]
    assert "And mind the step" in steered[-1]
    assert "Then sweep" in queued[-1]
    assert "through the gate" in said(server.chats[1], "tool")[0]


def test_escape_closes_the_connection_and_gives_queued_text_back(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server({"fault": "pings", "text": "Let me think"}, "Fresh start.")
    place.use(server.url)
    screen = terminal()
    screen.until_ready()
    screen.say("Talk")
    screen.until("Let me think")
    screen.say("Also this", key=ALT_ENTER)
    screen.press(ESCAPE)
    screen.until(server.chats[0].ended.is_set)
    screen.until(lambda: screen.prompt == "Also this")
    screen.until("interrupted")
    assert server.chats[0].aborted
    screen.press(ENTER)
    screen.until("Fresh start.")


def test_escape_ends_a_command_of_the_model(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server(call("shell", command="echo $$ > pid; sleep 600"), "Never mind.")
    place.use(server.url)
    screen = terminal("--mode", "auto")
    screen.until_ready()
    screen.say("Wait")
    pid_file = place.workspace / "pid"
    screen.until(lambda: pid_file.exists() and pid_file.read_text("utf-8").strip())
    screen.press(ESCAPE)
    screen.until("interrupted")
    assert len(server.chats) == 1, screen.text
    screen.say("Go on")
    screen.until("Never mind.")


def test_shift_tab_goes_through_the_modes(place: Place, scripted_server: StartServer, terminal: OpenTerminal):
    place.use(scripted_server().url)
    screen = terminal()
    screen.until_ready()
    seen = []
    for mode in ("accept edits", "auto", "plan", "ask"):
        screen.press(SHIFT_TAB)
        screen.until(lambda mode=mode: screen.rows[-1].strip().startswith(mode))
        seen.append(mode)
    assert len(seen) == 4


@pytest.mark.parametrize("fault", ["drop", "http_500"])
def test_a_server_that_fails_in_mid_turn_leaves_a_session_that_goes_on(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal, fault: str
):
    server = scripted_server({"fault": fault, "text": "half of a sentence", "times": 1}, "Back again.")
    place.use(server.url)
    screen = terminal()
    screen.until_ready()
    screen.say("Hello")
    screen.until("Back again.")
    assert len(server.chats) == 2


def test_a_server_that_dies_in_mid_turn_is_told_and_the_text_is_not_lost(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server({"fault": "pings", "text": "Let me think"})
    place.use(server.url)
    screen = terminal()
    screen.until_ready()
    screen.say("Talk")
    screen.until("Let me think")
    screen.type("meanwhile")
    server.close()
    screen.until("✗ server")
    assert screen.prompt == "meanwhile"
    screen.press(CONTROL_C)
    assert screen.quit() == 0
