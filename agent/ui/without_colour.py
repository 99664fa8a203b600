"""The screen without colours (https://no-color.org): what stood out by its ground is reversed."""

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

# Panels differ from the ground by less, a cursor, a selection and the chosen line of a list by more.
_STANDS_OUT = 0.2


class WithoutColour(LineFilter):
    """Leaves only bold, dim, italic, underlined, struck and reversed."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[Style, float], Style] = {}

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        ground = background.brightness
        return [Segment(text, self._plain(style, ground), control) for text, style, control in segments]

    def _plain(self, style: Style | None, ground: float) -> Style | None:
        if style is None:
            return None
        plain = self._known.get((style, ground))
        if plain is None:
            plain = self._known[style, ground] = _without_colour(style, ground)
        return plain


def _without_colour(style: Style, ground: float) -> Style:
    return Style(
        bold=style.bold,
        dim=style.dim,
        italic=style.italic,
        underline=style.underline,
        strike=style.strike,
        reverse=style.reverse or _stands_out(style, ground) or None,
        link=style.link,
    )


def _stands_out(style: Style, ground: float) -> bool:
    paper = style.bgcolor
    if paper is None or paper.is_default:
        return False
    return abs(Color.from_rich_color(paper).brightness - ground) > _STANDS_OUT
