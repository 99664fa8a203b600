"""A table whose scroll bar, where a terminal is too narrow for it, is a line and not a block."""

from typing import Any

from rich.segment import Segment, Segments
from rich.style import Style
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.widgets import DataTable

_LINE = "▂"


class ThinRender(ScrollBarRender):
    """The thumb as a line along the bottom of its cells; both ends as Textual has them for the mouse."""

    @classmethod
    def render_bar(cls, *args: Any, **options: Any) -> Segments:
        drawn = super().render_bar(*args, **options)
        line = Style.from_color(options.get("bar_color"), options.get("back_color"))
        return Segments([_thin(segment, line) for segment in drawn.segments])


def _thin(segment: Segment, line: Style) -> Segment:
    style = segment.style
    if style is None or style.meta.get("@mouse.down") != "grab":
        return segment
    return Segment(_LINE * len(segment.text), line + Style.from_meta(style.meta))


class ThinBar(ScrollBar):
    """A horizontal one."""

    renderer = ThinRender


class TurnTable(DataTable[str]):
    """Rows of figures, wider than a narrow terminal."""

    @property
    def horizontal_scrollbar(self) -> ScrollBar:
        """Made here because Textual has no other way to choose the class of a scroll bar."""
        if self._horizontal_scrollbar is None:
            self._horizontal_scrollbar = ThinBar(
                vertical=False, name="horizontal", thickness=self.scrollbar_size_horizontal
            )
            self._horizontal_scrollbar.display = False
            self.app._start_widget(self, self._horizontal_scrollbar)
        return self._horizontal_scrollbar
