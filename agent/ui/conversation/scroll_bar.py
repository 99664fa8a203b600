"""A scroll bar that is drawn anew only when its thumb moves."""

from math import ceil

from textual.geometry import Region
from textual.scrollbar import ScrollBar
from textual.strip import Strip

_PARTS_OF_A_CELL = 8  # the thumb moves in steps of so many parts


class SteadyScrollBar(ScrollBar):
    """Each row that a stream adds changes the sizes, but in a long conversation hardly ever what is seen.

    Textual draws the bar for every change, which was a fifth of the time that a stream took to show.
    """

    def __init__(self, *, thickness: int) -> None:
        super().__init__(vertical=True, name="vertical", thickness=thickness)
        self._look: tuple[object, ...] = ()
        self._strips: list[Strip] = []

    def render_lines(self, crop: Region) -> list[Strip]:
        look = (crop, self.size, self._thumb, self._state)
        if look != self._look:
            self._look, self._strips = look, super().render_lines(crop)
        return self._strips

    @property
    def _state(self) -> tuple[object, ...]:
        """Everything besides the thumb that decides about the picture."""
        return (self.mouse_over, self.grabbed is not None, self.app.theme, self.thickness)

    @property
    def _thumb(self) -> tuple[int, int]:
        """Where the thumb begins and how long it is, in parts of a cell, as Textual rounds it."""
        height, rows, window = self.size.height, self.window_virtual_size, self.window_size
        if not height or rows <= window:
            return 0, 0
        length = max(1.0, window * height / rows)
        begin = (height - length) * self.position / (rows - window)
        return int(begin * _PARTS_OF_A_CELL), ceil(length * _PARTS_OF_A_CELL)
