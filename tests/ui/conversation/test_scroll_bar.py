from textual.geometry import Region
from textual.scrollbar import ScrollBar
from textual.strip import Strip

from agent.core.events import TextDelta
from agent.ui.conversation.scroll_bar import SteadyScrollBar
from tests.ui.conversation.rig import feed, shown


def drawn(bar: ScrollBar) -> list[Strip]:
    return bar.render_lines(Region(0, 0, bar.size.width, bar.size.height))


async def test_bar_is_drawn_anew_only_when_its_thumb_moves():
    async with shown([TextDelta(text="word\n\n" * 4000)], size=(60, 12)) as (view, pilot):
        bar = view.vertical_scrollbar
        assert isinstance(bar, SteadyScrollBar)
        at_the_end = drawn(bar)

        await feed(view, pilot, [TextDelta(text="one more row\n\n")])
        assert all(now is before for now, before in zip(drawn(bar), at_the_end, strict=True))

        view.action_begin()
        await pilot.pause()
        assert [list(strip) for strip in drawn(bar)] != [list(strip) for strip in at_the_end]


async def test_bar_looks_and_answers_the_mouse_as_textual_draws_it():
    async with shown([TextDelta(text="word\n\n" * 40)], size=(60, 12)) as (view, pilot):
        for row in (0, 1, 7, 20, 63, 70):
            view._go_to(row)
            await pilot.pause()
            bar = view.vertical_scrollbar
            whole = Region(0, 0, bar.size.width, bar.size.height)
            assert [list(strip) for strip in bar.render_lines(whole)] == [
                list(strip) for strip in ScrollBar.render_lines(bar, whole)
            ]
