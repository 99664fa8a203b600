"""Timers on a machine that holds the program up at the worst moment."""

import asyncio

import pytest
from textual import _time, events
from textual.app import App
from textual.geometry import Size

from tests.ui.rig import Rig, settle, until


@pytest.fixture
def held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two looks at the clock, a one-shot timer of Textual's loses a second."""
    real, lost = _time.get_time, [0.0]

    def get_time() -> float:
        task = asyncio.current_task()
        if task is not None and task.get_name().startswith("set_timer#"):
            lost[0] += 1
            return real() + lost[0]
        return real()

    monkeypatch.setattr(_time, "get_time", get_time)


async def test_textual_itself_loses_the_call_which_is_why_there_are_sure_timers(held_up: None):
    called: list[str] = []
    app: App[None] = App()
    async with app.run_test() as pilot:
        app.set_timer(0.01, lambda: called.append("once"))
        await pilot.pause(0.1)
    assert called == []


async def test_a_call_that_is_overdue_at_once_is_made_all_the_same(held_up: None):
    rig, called = Rig(), asyncio.Event()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.set_timer(0.01, called.set)
        await asyncio.wait_for(called.wait(), 60)


async def test_a_new_size_is_drawn_though_the_machine_is_busy(held_up: None):
    rig = Rig()
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, rig)
        rig.app.post_message(events.Resize(Size(100, 30), Size(100, 30)))
        await until(pilot, lambda: rig.app.status.region.bottom == 30)


async def test_a_message_of_the_status_bar_goes_away_though_the_machine_is_busy(held_up: None):
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.say("for a moment", 0.01)
        await until(pilot, lambda: "for a moment" not in str(rig.app.status.render()))
