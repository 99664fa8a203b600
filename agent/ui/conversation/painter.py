"""Turns laid out lines into strips, and remembers those that were painted last."""

from textual.selection import Selection
from textual.strip import Strip

from agent.ui.conversation.line import Line
from agent.ui.conversation.look import Look
from agent.ui.conversation.strips import marked, strip_of

_KEPT_STRIPS = 2000


class Painter:
    """Paints in one look; another theme takes another painter."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._painted: list[Line] = []

    def blank(self, width: int) -> Strip:
        return Strip.blank(width, self.look.base)

    def strip(
        self, line: Line, row: int, width: int, selection: Selection | None, *, is_chosen: bool
    ) -> Strip:
        """`line` in `width` cells. `row` is its place in the conversation, which a selection counts in."""
        if is_chosen or selection is not None:
            return strip_of(marked(line, row, selection, is_chosen=is_chosen), line.fill, width, self.look)
        strip = line.strip
        if strip is None or strip.cell_length != width:
            strip = line.strip = strip_of(line.spans, line.fill, width, self.look)
            self._keep(line)
        return strip

    def forget(self) -> None:
        """Lets go of every strip, so that all is painted anew."""
        for line in self._painted:
            line.strip = None
        self._painted.clear()

    def _keep(self, line: Line) -> None:
        self._painted.append(line)
        if len(self._painted) > _KEPT_STRIPS:
            for old in self._painted[: _KEPT_STRIPS // 2]:
                old.strip = None
            del self._painted[: _KEPT_STRIPS // 2]
