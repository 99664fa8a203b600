"""When a session looks at its server while nothing happens, and when something does."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from agent.app.chat.live import LiveSession
from agent.app.chat.moment import Moment
from agent.app.chat.server_watch import STILL_BUSY, look_after_interruption, watch_server
from agent.core.events import Event, Notice
from tests.patience import PATIENCE_SECONDS


class Looks:
    """Stands in for the engine's keeper, and counts how often it is asked."""

    def __init__(self) -> None:
        self.count = 0
        self.asked = asyncio.Event()

    @property
    def engine(self) -> None:
        self.count += 1
        self.asked.set()


def idle_session(looks: Looks) -> LiveSession:
    parts = SimpleNamespace(
        is_running=False, is_left_off=False, began=asyncio.Event(), keeper=looks, moment=Moment()
    )
    return cast("LiveSession", parts)


async def test_a_turn_that_begins_is_not_slept_through():
    looks = Looks()
    live = idle_session(looks)
    watch = asyncio.create_task(watch_server(live, look_seconds=3600.0))
    await asyncio.sleep(0)
    assert looks.count == 0
    live.is_running = True
    live.began.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await looks.asked.wait()
    watch.cancel()


@pytest.mark.parametrize(
    ("reasons", "is_left_off", "busy", "is_told"),
    [
        (["cancelled"], False, True, True),
        (["cancelled"], False, False, False),
        (["cancelled", "done"], False, True, False),
        (["cancelled", ""], False, True, False),
        ([], False, True, False),
        (["done"], True, True, True),
        (["done"], True, False, False),
    ],
)
async def test_a_server_that_is_busy_after_an_interruption_is_told_about(
    reasons: list[str], is_left_off: bool, busy: bool, is_told: bool
):
    told: list[Event] = []
    rows = [SimpleNamespace(reason=reason) for reason in reasons]
    parts = SimpleNamespace(
        is_running=False,
        is_left_off=is_left_off,
        keeper=SimpleNamespace(engine=object()),
        turns=SimpleNamespace(rows=rows),
        emit=told.append,
    )
    live = cast("LiveSession", parts)
    await look_after_interruption(live, lambda _: busy)
    assert told == [Notice(text=STILL_BUSY)] * is_told
    assert not live.is_left_off
