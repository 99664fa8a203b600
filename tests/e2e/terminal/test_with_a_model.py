"""The interface in a real terminal with the embedded server and the smallest model (98 MB).

What so small a model says, how long it goes on and how its turn ends are its own affair: nothing here waits
for a certain one of them.
"""

import os
import re
from collections.abc import Iterator

import pytest

from agent.resources import data_folder
from agent.server.probe import busy_slots
from agent.server.record import Record, list_records
from tests.e2e.conftest import Place
from tests.e2e.terminal.conftest import OpenTerminal, recorded
from tests.e2e.terminal.rig import ENTER, ESCAPE, Terminal

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
START_SECONDS = 200.0
NUMBERS = "Write down all numbers from one to five hundred, in words."
SHORT = {"AGENT_LIMITS_MAX_STEPS": "2", "AGENT_LIMITS_REPLY_TOKENS": "64"}
"""For turns whose end is waited for."""
TRIALS = 5
"""How often a turn may be over by itself before Escape reaches it."""


@pytest.fixture
def small(place: Place) -> Iterator[Place]:
    """A place whose server has the small model and one thread."""
    place.variables |= {
        "AGENT_PROFILE": "embedded-small",
        "AGENT_SERVER_THREADS": "1",
        "AGENT_MODELS_FOLDER": os.environ.get("AGENT_MODELS_FOLDER") or str(data_folder() / "models"),
    }
    yield place
    place.run("server", "stop", "--force")


def record_of(place: Place) -> Record:
    [record] = list_records(place.state / "run")
    return record


def endings(place: Place) -> list[str]:
    """How the turns ended so far."""
    return [event["reason"] for event in recorded(place, "turn_finished")]


def begin(screen: Terminal, task: str) -> None:
    """Sends a task to a program that is being started, and waits until the model works on it."""
    screen.until("Ask for something")
    screen.press(task, ENTER)
    screen.until(lambda: "tok/s" in screen.rows[-1], patience=START_SECONDS)


def how_escape_ends_it(screen: Terminal, place: Place, number: int) -> str:
    """Presses Escape while the server works on that turn; says how the turn ended."""
    record = record_of(place)
    screen.until(lambda: busy_slots(record) == 1 or len(endings(place)) >= number)
    screen.press(ESCAPE)
    screen.until(lambda: len(endings(place)) >= number)
    screen.until(lambda: busy_slots(record) == 0)
    return endings(place)[number - 1]


def test_escape_ends_a_reply_and_frees_the_slot(small: Place, terminal: OpenTerminal):
    screen = terminal("--mode", "plan", size=(100, 30))
    begin(screen, NUMBERS)
    number = 1
    while (ending := how_escape_ends_it(screen, small, number)) != "cancelled":
        number += 1
        assert number <= TRIALS, ending
        screen.say(NUMBERS)
    screen.until("interrupted")


def test_a_whole_turn_ends_with_the_figures_of_the_server(small: Place, terminal: OpenTerminal):
    small.variables |= {"AGENT_PROFILE": "embedded-dflash", **SHORT}
    screen = terminal("--mode", "plan", size=(200, 60))
    begin(screen, "Say good morning.")
    screen.until(lambda: endings(small), patience=START_SECONDS)
    screen.until(lambda: "of model time" in " ".join(screen.text.split()))
    units = ("prefill", "tok/s", "cached", "context")
    screen.until(lambda: "~" not in screen.rows[-1] and all(unit in screen.rows[-1] for unit in units))
    screen.until(lambda: re.search(r"accepted \d+ %( · | ×)\d\.\d", screen.rows[-1]))


def test_a_killed_program_goes_on_with_the_same_server(small: Place, terminal: OpenTerminal):
    screen = terminal("--mode", "plan", size=(100, 30))
    begin(screen, NUMBERS)
    before = record_of(small)
    screen.kill()
    turns = len(endings(small))
    small.variables |= SHORT
    other = terminal("--continue", "--mode", "plan", size=(100, 30))
    other.until("Write down all numbers")
    other.until_ready()
    assert record_of(small).pid == before.pid
    other.until(lambda: busy_slots(before) == 0)
    other.say("And now the letters.")
    other.until(lambda: len(endings(small)) > turns, patience=START_SECONDS)
    assert record_of(small).pid == before.pid
