"""The scroll bar of a table that is wider than the terminal."""

from rich.color import Color

from agent.ui.widgets.turn_table import ThinRender


def test_the_thumb_is_a_line_that_can_be_grabbed_and_no_block():
    back, bar = Color.parse("black"), Color.parse("white")
    drawn = ThinRender.render_bar(
        size=10,
        virtual_size=20,
        window_size=10,
        position=3.3,
        thickness=1,
        vertical=False,
        back_color=back,
        bar_color=bar,
    )
    cells = [segment for segment in drawn.segments if segment.style is not None]
    assert "".join(cell.text for cell in cells).strip() == "▂" * 6
    for cell in cells:
        assert cell.style is not None
        assert not cell.style.reverse
        assert (cell.text == "▂") == (cell.style.meta["@mouse.down"] == "grab")
