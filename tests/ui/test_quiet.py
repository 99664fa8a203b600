"""How little is done while a reply streams, and while nothing happens. All is counted, nothing is timed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from textual.pilot import Pilot
from textual.timer import Timer
from textual.widget import Widget

from agent.core.events import StepStarted, TextDelta, TurnStarted
from agent.ui.conversation.pace import Pace
from agent.ui.conversation.view import ConversationView
from agent.ui.desk import IDLE_SECONDS, MOST_IDLE_SECONDS, Desk
from agent.ui.frames import MainScreen
from benchmarks.streamed_text import text_of
from tests.ui.rig import Rig, rest, settle

TOKENS = 240
A_FRAME = 12
"""Tokens at 150 tok/s and twelve frames a second."""


class CountedScreen(MainScreen):
    """Counts what it does to show something."""

    def __init__(self) -> None:
        super().__init__()
        self.frames = 0
        self.layouts = 0

    def _compositor_refresh(self) -> None:
        self.frames += 1
        super()._compositor_refresh()

    def _refresh_layout(self, *arguments: Any, **options: Any) -> None:
        self.layouts += 1
        super()._refresh_layout(*arguments, **options)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """From zero on."""
        self.frames = self.layouts = 0
        yield


class StreamRig(Rig):
    """The real view of the conversation, on a screen that counts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.screen = CountedScreen()
        self.view = ConversationView()
        self.app.make_conversation = lambda: self.view
        self.app.get_default_screen = lambda: self.screen

    @property
    def desk(self) -> Desk:
        assert self.app.desk is not None
        return self.app.desk


@asynccontextmanager
async def opened(rig: StreamRig) -> AsyncIterator[Pilot[Any]]:
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, rig)
        yield pilot


async def stream(rig: StreamRig, pilot: Pilot[Any], tokens: int, at_once: int = A_FRAME) -> None:
    """A reply that arrives a frame's tokens at a time."""
    text = text_of(tokens * 4)
    pieces = [TextDelta(text=text[at : at + 4]) for at in range(0, tokens * 4, 4)]
    for first in range(0, tokens, at_once):
        for piece in pieces[first : first + at_once]:
            rig.desk.bridge.show(piece)
        rig.view.flush()
        await rest(pilot)


async def test_a_reply_that_streams_lays_nothing_out_anew_and_a_bite_of_it_is_one_frame():
    rig = StreamRig()
    async with opened(rig) as pilot:
        await stream(rig, pilot, 60)
        with rig.screen.counted():
            await stream(rig, pilot, TOKENS)
        assert rig.screen.layouts == 0
        assert 0 < rig.screen.frames <= TOKENS / A_FRAME * 1.2


async def test_any_number_of_tokens_waits_for_the_next_frame():
    rig = StreamRig()
    async with opened(rig) as pilot:
        await stream(rig, pilot, 60)
        with rig.screen.counted():
            await stream(rig, pilot, 2 * TOKENS, at_once=2 * TOKENS)
        assert rig.screen.frames <= 2


def test_frames_are_a_twelfth_of_a_second_apart():
    pace = Pace()
    now, frames = 100.0, 0
    while now < 110.0:
        now += pace.pause_from(now)
        pace.note(now, now + 0.002)
        frames += 1
    assert 115 <= frames <= 121


async def test_nothing_is_drawn_while_nothing_happens():
    rig = StreamRig()
    async with opened(rig) as pilot:
        with rig.screen.counted():
            for _ in range(5):
                rig.desk.refresh()
                await rest(pilot)
        assert (rig.screen.frames, rig.screen.layouts) == (0, 0)


async def test_only_the_figures_are_looked_at_while_nothing_happens():
    rig = StreamRig()
    async with opened(rig) as pilot:
        await rest(pilot)
        assert [timer for timer in timers(rig) if timer._active.is_set()] == [rig.desk._idle]


async def test_the_figures_are_looked_at_ever_more_seldom_until_something_happens():
    rig = StreamRig()
    async with opened(rig) as pilot:
        pauses = []
        for _ in range(5):
            rig.desk._idle.stop()
            rig.desk._look()
            pauses.append(rig.desk._idle._interval)
        assert pauses == [10.0, 20.0, 40.0, MOST_IDLE_SECONDS, MOST_IDLE_SECONDS]

        rig.desk.show(TurnStarted(attempt=1))
        assert rig.desk._idle._interval == IDLE_SECONDS

        rig.desk._look()
        await pilot.press("a")
        await rest(pilot)
        assert rig.desk._idle._interval == IDLE_SECONDS


async def test_the_figures_of_a_running_turn_are_shown_a_few_times_a_second():
    rig = StreamRig()
    async with opened(rig) as pilot:
        rig.desk.show(TurnStarted(attempt=1))
        rig.desk.show(StepStarted(step=1))
        await rest(pilot)
        assert rig.desk._frames._interval >= 0.25
        assert rig.desk._frames._active.is_set()


def timers(rig: StreamRig) -> list[Timer]:
    widgets: list[Any] = [rig.app, rig.screen, *rig.screen.walk_children(Widget)]
    tasks = {task.get_name() for task in asyncio.all_tasks()}
    return [timer for widget in widgets for timer in widget._timers if timer.name in tasks]
