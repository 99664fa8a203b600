"""Reading what every conversation begins with: who is told how far it is."""

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.app.chat.engine import Engine, HeadProgress
from agent.app.servers.early import states_folder
from agent.app.servers.serving import Serving
from agent.config.load import load_settings
from agent.core.events import Event, Prefill
from agent.llm.protocol import ConstrainedProtocol
from agent.resources import runtime_folder
from agent.server.model_file import ModelFile
from agent.server.profile import Profile
from tests.fakes.slot_record import record_for
from tests.fakes.slot_server import SlotServer

FINGERPRINT = "f" * 32
PROFILE = Profile(name="mine", engine="embedded", target=ModelFile(file="tiny.gguf"))


@pytest.fixture
def slow_server(homes: Path) -> Iterator[SlotServer]:
    """It says how far it is, then reads on when its gate opens."""
    server = SlotServer(states_folder() / FINGERPRINT)
    server.world.gate = threading.Event()
    yield server
    server.world.gate.set()
    server.close()


def engine_of(server: SlotServer) -> Engine:
    record = record_for(server.port, runtime_folder(), FINGERPRINT)
    serving = Serving(PROFILE, load_settings(None, os.environ, {}), FINGERPRINT)
    no_model: Any = None
    return Engine(
        serving=serving, endpoint=record.endpoint(), protocol=ConstrainedProtocol([]), model=no_model
    )


async def first_told(engine: Engine, told: asyncio.Queue[Event]) -> Event:
    waiting = asyncio.create_task(engine.warmed_up(told.put_nowait))
    try:
        return await asyncio.wait_for(told.get(), 30)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_a_turn_that_waits_for_the_beginning_to_be_read_is_told_how_far_it_is(slow_server: SlotServer):
    engine = engine_of(slow_server)
    engine.warm_up()
    event = await first_told(engine, asyncio.Queue())
    assert isinstance(event, Prefill)
    assert event.processed == 1 < event.total


def test_who_comes_later_is_told_where_the_reading_stands_and_then_each_step():
    told: list[Event] = []
    steps = [Prefill(total=40, cached=0, processed=number) for number in (16, 32)]
    progress = HeadProgress()
    progress.note(steps[0])
    progress.listen(told.append)
    progress.note(steps[1])
    assert told == steps
