"""What people see who want no colours."""

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from agent.ui.without_colour import WithoutColour

DARK, LIGHT = Color.parse("#16181d"), Color.parse("#fbfaf7")


def plain(style: Style | None, ground: Color = DARK) -> Style | None:
    [segment] = WithoutColour().apply([Segment("word", style)], ground)
    assert segment.text == "word"
    return segment.style


def test_no_colour_is_left_and_what_words_are_set_in_is():
    style = plain(Style.parse("bold italic underline strike dim #7aa2d6 on #1d2026"))
    assert style == Style.parse("bold italic underline strike dim")


@pytest.mark.parametrize(
    ("paper", "ground"), [("#d4d8df", DARK), ("#22262e", LIGHT)], ids=["dark theme", "light theme"]
)
def test_a_cursor_is_reversed(paper: str, ground: Color):
    assert plain(Style.parse(f"#7a7a7a on {paper}"), ground) == Style(reverse=True)


@pytest.mark.parametrize(("paper", "ground"), [("#262a32", DARK), ("#e4e1d9", LIGHT)])
def test_a_panel_is_not(paper: str, ground: Color):
    assert plain(Style.parse(f"on {paper}"), ground) == Style()


def test_what_was_reversed_stays_so_and_nothing_stays_nothing():
    assert plain(Style(reverse=True)) == Style(reverse=True)
    assert plain(Style.parse("red on default")) == Style()
    assert plain(None) is None
