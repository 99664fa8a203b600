"""Turns laid out lines into strips, and remembers those that were painted last."""

from collections.abc import Sequence

from textual.color import Color
from textual.filter import LineFilter
from textual.selection import Selection
from textual.strip import Strip

from agent.ui.conversation.line import Line
from agent.ui.conversation.look import Look
from agent.ui.conversation.strips import marked, strip_of

_KEPT_STRIPS = 2000
_BLACK = Color(0, 0, 0)


class Painter:
    """Paints in one look; another theme takes another painter.

    `filters` change what is painted, as for a terminal without colours; some need its background.
    """

    def __init__(self, look: Look, filters: Sequence[LineFilter] = (), background: Color = _BLACK) -> None:
        self.look = look
        self._filters = filters
        self._background = background
        self._painted: list[Line] = []

    def blank(self, width: int) -> Strip:
        return self._finished(Strip.blank(width, self.look.base))

    def strip(self, line: Line, width: int) -> Strip:
        strip = line.strip
        if strip is None or strip.cell_length != width:
            strip = line.strip = self._finished(strip_of(line.spans, line.fill, width, self.look))
            self._keep(line)
        return strip

    def marked(
        self, line: Line, row: int, width: int, selection: Selection | None, *, is_chosen: bool
    ) -> Strip:
        """As `strip`, for a line of a chosen block, or where something is selected.

        `row` is its place in the conversation, which a selection counts in.
        """
        spans = marked(line, row, selection, is_chosen=is_chosen)
        return self._finished(strip_of(spans, line.fill, width, self.look))

    def forget(self) -> None:
        """Lets go of every strip, so that all is painted anew."""
        for line in self._painted:
            line.strip = None
        self._painted.clear()

    def _finished(self, strip: Strip) -> Strip:
        for line_filter in self._filters:
            strip = strip.apply_filter(line_filter, self._background)
        return strip

    def _keep(self, line: Line) -> None:
        self._painted.append(line)
        if len(self._painted) > _KEPT_STRIPS:
            for old in self._painted[: _KEPT_STRIPS // 2]:
                old.strip = None
            del self._painted[: _KEPT_STRIPS // 2]
