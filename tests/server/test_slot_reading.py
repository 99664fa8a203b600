"""A prompt that is read without a reply: what it costs, and that it can be broken off."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.server.record import Record
from agent.server.slot_reading import Reading, SlotLook, last_task, look_at_slots, rendered
from tests.fakes.slot_record import record_for
from tests.fakes.slot_server import SlotServer
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SlotServer]:
    server = SlotServer(tmp_path, slots=2)
    yield server
    server.close()


@pytest.fixture
def record(server: SlotServer, tmp_path: Path) -> Record:
    return record_for(server.port, tmp_path / "run")


def test_reading_tells_what_was_evaluated(server: SlotServer, record: Record):
    server.world.prompts[0], server.world.tasks = "abc", [0, 5]
    told: list[tuple[int, int, int]] = []
    reading = Reading(record)
    assert reading.begin("abcdef")
    read = reading.finish(lambda *numbers: told.append(numbers))
    assert read is not None
    assert (read.tokens, read.evaluated, read.slot) == (6, 3, 0)
    assert told == [(6, 0, 1)]


def test_nothing_is_asked_for_but_the_prompt(server: SlotServer, record: Record):
    reading = Reading(record)
    reading.begin("abc")
    reading.finish()
    [body] = server.world.asked("/completion")
    assert (body["prompt"], body["n_predict"], body["cache_prompt"]) == ("abc", 0, True)


def test_a_reading_that_is_cancelled_ends_at_once(server: SlotServer, record: Record):
    server.world.gate = threading.Event()
    reading = Reading(record)
    assert reading.begin("abc")
    outcome: list[object] = []
    thread = threading.Thread(target=lambda: outcome.append(reading.finish()))
    thread.start()
    server.world.wait_for("/completion")
    reading.cancel()
    thread.join(PATIENCE_SECONDS)
    server.world.gate.set()
    assert outcome == [None]


def test_a_reading_that_was_cancelled_before_is_never_sent(server: SlotServer, record: Record):
    reading = Reading(record)
    reading.cancel()
    assert not reading.begin("abc")
    assert reading.finish() is None


def test_a_server_that_is_gone_is_no_error(server: SlotServer, record: Record, tmp_path: Path):
    gone = record_for(1, tmp_path / "gone")
    assert not Reading(gone).begin("abc")
    assert look_at_slots(gone) is None
    assert rendered(gone, {"messages": []}) is None


def test_slots_tell_what_they_hold(server: SlotServer, record: Record):
    server.world.prompts[1], server.world.tasks[1] = "abcd", 7
    server.world.busy.add(1)
    slots = look_at_slots(record)
    assert slots == [
        SlotLook(number=0, tokens=0, task=-1, is_busy=False),
        SlotLook(number=1, tokens=4, task=7, is_busy=True),
    ]
    assert last_task(slots or []) == 7
