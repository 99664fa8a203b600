"""The interface in a real terminal with the embedded server and the smallest model (98 MB)."""

import os
from collections.abc import Iterator

import pytest

from agent.resources import data_folder
from agent.server.probe import busy_slots
from agent.server.record import Record, list_records
from tests.e2e.conftest import Place
from tests.e2e.terminal.conftest import OpenTerminal
from tests.e2e.terminal.rig import ENTER, ESCAPE, Terminal

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
START_SECONDS = 200.0


@pytest.fixture
def small(place: Place) -> Iterator[Place]:
    """A place whose server has the small model and one thread."""
    place.variables |= {
        "AGENT_PROFILE": "embedded-small",
        "AGENT_SERVER_THREADS": "1",
        "AGENT_MODELS_FOLDER": os.environ.get("AGENT_MODELS_FOLDER") or str(data_folder() / "models"),
    }
    yield place
    place.run("server", "stop")


def record_of(place: Place) -> Record:
    [record] = list_records(place.state / "run")
    return record


def begin(screen: Terminal, task: str) -> None:
    """Sends a task, waits until the model writes and the status bar counts it."""
    screen.until("Ask for something")
    screen.press(task, ENTER)
    screen.until(lambda: "~" in screen.rows[-1] and "tok/s" in screen.rows[-1], patience=START_SECONDS)


def test_a_reply_streams_with_its_speed_and_escape_frees_the_slot(small: Place, terminal: OpenTerminal):
    screen = terminal(size=(100, 30))
    begin(screen, "Write down all numbers from one to five hundred, in words.")
    record = record_of(small)
    screen.until(lambda: busy_slots(record) == 1)
    screen.press(ESCAPE)
    screen.until("interrupted")
    screen.until(lambda: busy_slots(record) == 0)


def test_a_whole_reply_ends_with_the_figures_of_the_server(small: Place, terminal: OpenTerminal):
    screen = terminal("--mode", "plan", size=(200, 60))
    begin(screen, "Say good morning.")
    screen.until("of model time", patience=START_SECONDS)
    figures = screen.rows[-1]
    assert "~" not in figures
    assert all(unit in figures for unit in ("prefill", "tok/s", "cached", "context"))


def test_a_killed_program_goes_on_with_the_same_server(small: Place, terminal: OpenTerminal):
    screen = terminal(size=(100, 30))
    begin(screen, "Write down all numbers from one to five hundred, in words.")
    before = record_of(small)
    screen.kill()
    other = terminal("--continue", size=(100, 30))
    other.until("Write down all numbers")
    other.until_ready()
    assert record_of(small).pid == before.pid
    other.until(lambda: busy_slots(before) == 0)
    begin(other, "And now the letters.")
