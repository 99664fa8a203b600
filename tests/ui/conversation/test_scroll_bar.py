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
        assert drawn(bar) is at_the_end

        view.action_begin()
        await pilot.pause()
        assert [list(strip) for strip in drawn(bar)] != [list(strip) for strip in at_the_end]
