"""The interface against the real embedded server, whose model is held to certain replies.

What the server was sent, what it had in its cache and what became of the files does not depend on how able
the model is.
"""

import os
import re

import pytest

from tests.e2e.conftest import Place
from tests.e2e.terminal.conftest import Force, OpenTerminal, recorded
from tests.e2e.terminal.forced import Forced
from tests.e2e.terminal.rig import ALT_ENTER, CONTROL_C, CONTROL_D, ENTER, Terminal
from tests.e2e.terminal.test_leaving import end_of_the_pipe
from tests.real.rig import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

MAKE_ONE = ("shell", {"command": "mkdir one"})
DONE = ("finish", {"answer": "It is done."})
LONG = " ".join(f"Line {number} of many." for number in range(1, 21)) + " The end of it."
PATIENCE = 150.0


def asked_about(screen: Terminal, task: str) -> None:
    """Sends a task and waits for the question about the command."""
    screen.until_ready()
    screen.say(task)
    screen.until(lambda: screen.is_asking and "mkdir one" in screen.text, patience=PATIENCE)


def assert_went_on(server: Forced) -> None:
    """The second request held the first one unchanged, so the server had it in its cache."""
    first, second = server.messages(0), server.messages(1)
    assert second[: len(first)] == first
    assert len(second) > len(first)
    assert server.read(1)[0] >= server.prompt(0) - 1


def test_a_yes_runs_the_command_of_the_model_and_its_result_goes_back(
    place: Place, force: Force, terminal: OpenTerminal
):
    server = force(MAKE_ONE, DONE)
    screen = terminal()
    asked_about(screen, "Make it")
    assert not (place.workspace / "one").exists()
    screen.until(lambda: server.is_idle)
    screen.answer("1")
    screen.until("It is done.", patience=PATIENCE)

    assert (place.workspace / "one").is_dir()
    assert [event["outcome"] for event in recorded(place, "approval_settled")] == ["once"]
    assert_went_on(server)


def test_a_no_makes_nothing_and_its_reason_reaches_the_model(
    place: Place, force: Force, terminal: OpenTerminal
):
    server = force(MAKE_ONE, DONE)
    screen = terminal()
    asked_about(screen, "Make it")
    screen.answer("4")
    screen.until("Enter denies")
    screen.press("call it two instead")
    screen.until("call it two instead")
    screen.press(ENTER)
    screen.until("It is done.", patience=PATIENCE)

    assert not (place.workspace / "one").exists()
    [settled] = recorded(place, "approval_settled")
    assert (settled["outcome"], settled["reason"]) == ("deny", "call it two instead")
    assert "call it two instead" in server.told(1)[-1]
    assert "call it two instead" not in str(server.messages(0))


def test_enter_steers_the_model_after_its_command_and_nothing_is_read_twice(
    place: Place, force: Force, terminal: OpenTerminal
):
    os.mkfifo(place.workspace / "gate")
    server = force(("shell", {"command": "cat gate"}), DONE)
    screen = terminal("--mode", "auto")
    screen.until_ready()
    screen.say("Begin")
    pipe = end_of_the_pipe(place.workspace / "gate", screen)
    screen.say("And mind the step")
    screen.until("And mind the step")
    assert len(server.proxy.requests) == 1
    os.write(pipe, b"through the gate\n")
    os.close(pipe)
    screen.until("It is done.", patience=PATIENCE)

    assert "through the gate" in str(server.messages(1))
    assert server.told(1)[-1].endswith("And mind the step")
    assert_went_on(server)


def test_what_is_typed_while_the_model_writes_steers_it_and_alt_enter_waits_for_the_end(
    place: Place, force: Force, terminal: OpenTerminal
):
    server = force(MAKE_ONE, DONE, ("finish", {"answer": "And that too."}))
    server.proxy.hold(8)
    screen = terminal("--mode", "auto")
    screen.until_ready()
    screen.say("Begin")
    screen.until(server.proxy.is_held.is_set, patience=PATIENCE)
    screen.say("And mind the step")
    screen.say("Then sweep", key=ALT_ENTER)
    screen.until(lambda: "And mind the step" in screen.text and "Then sweep" in screen.text)
    server.proxy.let_go()
    screen.until("And that too.", patience=PATIENCE)

    assert (place.workspace / "one").is_dir()
    assert server.told(1)[-1].endswith("And mind the step")
    assert "Then sweep" not in str(server.messages(1))
    assert server.told(2)[-1].endswith("Then sweep")
    assert_went_on(server)
    screen.until(lambda: [event["reason"] for event in recorded(place, "turn_finished")] == ["done", "done"])


def test_a_session_that_was_left_goes_on_where_the_server_still_has_it(
    place: Place, force: Force, terminal: OpenTerminal
):
    server = force(("finish", {"answer": "A fine day."}), DONE)
    screen = terminal()
    screen.until_ready()
    screen.say("Good morning")
    screen.until("A fine day.", patience=PATIENCE)
    assert screen.quit() == 0
    assert screen.is_restored
    [name] = re.findall(rb"agent --resume (\S+)", screen.raw.rpartition(b"\x1b")[2])

    other = terminal("--resume", name.decode())
    other.until(lambda: "Good morning" in other.text and "A fine day." in other.text)
    other.until_ready()
    other.say("Go on")
    other.until("It is done.", patience=PATIENCE)
    assert_went_on(server)
    assert len(place.sessions()) == 1


@pytest.mark.parametrize("keys", [("/quit", ENTER), (CONTROL_D,), (CONTROL_C, CONTROL_C)])
def test_leaving_while_the_model_writes_frees_the_slot_and_closes_the_record(
    place: Place, force: Force, terminal: OpenTerminal, keys: tuple[str, ...]
):
    server = force(LONG, talks=True)
    server.proxy.hold(30)
    screen = terminal()
    screen.until_ready()
    screen.say("Talk")
    screen.until("Line 2 of many", patience=PATIENCE)
    screen.press(*keys)
    assert screen.wait_for_end() == 0
    assert screen.is_restored
    server.proxy.let_go()
    until(lambda: server.is_idle)
    assert server.proxy.left == [0]
    [session] = place.sessions()
    assert [event["reason"] for event in session if event["type"] == "turn_finished"] == ["cancelled"]


def test_sizes_that_change_while_a_reply_comes_lose_neither_it_nor_what_is_typed(
    place: Place, force: Force, terminal: OpenTerminal
):
    server = force(LONG, talks=True)
    server.proxy.hold(30)
    screen = terminal(size=(80, 24))
    screen.until_ready()
    screen.say("Talk")
    screen.until("Line 2 of many", patience=PATIENCE)
    screen.until(server.proxy.is_held.is_set, patience=PATIENCE)
    screen.type("kept")
    for columns, rows in ((200, 60), (40, 12)):
        screen.resize(columns, rows)
        screen.until(lambda: screen.prompt == "kept")
    assert not server.proxy.timings
    server.proxy.let_go()
    for columns, rows in ((20, 5), (100, 30), (60, 15), (120, 36)):
        screen.resize(columns, rows)
        screen.until(lambda: screen.prompt == "kept")
    screen.until(lambda: LONG in " ".join(screen.text.split()), patience=PATIENCE)
    screen.until(lambda: server.proxy.timings)
    screen.resize(200, 40)
    screen.until(lambda: all(figure in screen.rows[-1] for figure in server.figures(0)))
    screen.until(lambda: LONG in " ".join(screen.text.split()))
