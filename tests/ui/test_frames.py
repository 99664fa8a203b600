"""What is drawn for a change, and that it is the same as if everything were drawn."""

from collections.abc import Iterable
from random import Random

import pytest
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Input, Static

from agent.core.events import TextDelta
from agent.ui.conversation.view import ConversationView
from agent.ui.frames import Frame, MainScreen, ThriftyCompositor, without
from agent.ui.themes import OURS

SIZE = (60, 20)


class Counted(Static):
    """Knows which rows of it were asked for."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.asked: list[Region] = []

    def render_lines(self, crop: Region) -> list[Strip]:
        self.asked.append(crop)
        return super().render_lines(crop)


class FrameApp(App[None]):
    CSS = """
    ConversationView { height: 1fr; }
    #box { height: auto; padding: 1 2; background: $surface; border-left: thick $panel; }
    Input { border: none; height: 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        for known in OURS:
            self.register_theme(known)
        self.theme = "agent-dark"
        self.above, self.below = Counted("above"), Counted("below\nand more")

    def get_default_screen(self) -> Screen:
        return MainScreen()

    def compose(self) -> ComposeResult:
        yield self.above
        yield ConversationView()
        with Vertical(id="box"):
            yield Input()
        yield self.below

    @property
    def compositor(self) -> ThriftyCompositor:
        compositor = self.screen._compositor
        assert isinstance(compositor, ThriftyCompositor)
        return compositor

    def frame(self, regions: Iterable[Region]) -> Frame:
        self.compositor._dirty_regions = set(regions)
        frame = self.compositor.render_update()
        assert isinstance(frame, Frame)
        return frame


def cells(pieces: Iterable[tuple[int, int, Strip]]) -> dict[tuple[int, int], object]:
    """How each cell of the screen looks, drawn once."""
    found: dict[tuple[int, int], object] = {}
    for x, y, strip in pieces:
        at = x
        for text, style, _ in strip:
            look = style.clear_meta_and_links() if style is not None else None
            for sign in text:
                assert (at, y) not in found
                found[at, y] = (sign, look)
                at += 1
    return found


@pytest.mark.parametrize("seed", range(6))
async def test_any_part_of_the_screen_is_drawn_as_it_looks_in_the_whole(seed: int):
    app, random = FrameApp(), Random(seed)
    async with app.run_test(size=SIZE) as pilot:
        app.query_one(ConversationView).show(TextDelta(text="# One\n\nsome **words** " * 40))
        app.query_one(ConversationView).flush()
        await pilot.pause()
        whole = cells((0, y, strip) for y, strip in enumerate(app.compositor.render_strips()))
        for _ in range(30):
            x, y = random.randrange(SIZE[0]), random.randrange(SIZE[1])
            region = Region(x, y, random.randint(1, SIZE[0] - x), random.randint(1, SIZE[1] - y))
            drawn = cells(app.frame([region]).pieces)
            assert drawn == {
                (x, y): whole[x, y] for x in range(*region.column_span) for y in range(*region.line_span)
            }


async def test_what_lies_between_two_changes_is_not_asked_for():
    app = FrameApp()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        app.above.asked.clear()
        app.below.asked.clear()
        box = app.query_one("#box")
        app.frame([Region(0, 0, 5, 1), Region(0, SIZE[1] - 1, SIZE[0], 1)])
        assert app.above.asked == [Region(0, 0, 5, 1)]
        assert app.below.asked == [Region(0, 1, SIZE[0], 1)]
        assert box.region not in app.below.asked


async def test_a_change_inside_another_is_drawn_once():
    app = FrameApp()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        frame = app.frame([Region(0, 0, 60, 4), Region(3, 1, 10, 2)])
        assert len(cells(frame.pieces)) == 240


async def test_nothing_changed_draws_nothing():
    app = FrameApp()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        app.compositor._dirty_regions = set()
        assert app.compositor.render_update() is None


def test_what_is_left_beside_a_hole_covers_the_rest_once():
    region = Region(2, 3, 7, 6)
    for hole in (Region(2, 3, 7, 6), Region(4, 5, 2, 2), Region(2, 3, 1, 1), Region(8, 3, 1, 6), Region()):
        left = [
            (x, y)
            for part in without(region, hole)
            for x in range(*part.column_span)
            for y in range(*part.line_span)
        ]
        in_hole = {(x, y) for x in range(*hole.column_span) for y in range(*hole.line_span)}
        assert len(left) == len(set(left)) == region.area - hole.area
        assert not in_hole & set(left)
