"""A scroll bar of which only the cells are drawn anew where the thumb begins or ends."""

from math import ceil
from typing import Self

from rich.segment import Segment
from textual.geometry import Region
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip

_PARTS_OF_A_CELL = 8  # the thumb moves in steps of so many parts
Thumb = tuple[int, int]
"""Where it begins and where it ends, in parts of a cell."""


class SteadyScrollBar(ScrollBar):
    """Each row that a stream adds changes the sizes, but in a long conversation hardly ever what is seen.

    Textual draws the whole bar for every change, which was a fifth of the time that a stream took to show.
    """

    def __init__(self, *, thickness: int) -> None:
        super().__init__(vertical=True, name="vertical", thickness=thickness)
        self._asked: tuple[Thumb, tuple[object, ...]] | None = None
        self._look: tuple[object, ...] = ()
        self._strips: list[Strip] = []

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """As for any widget, but where only the thumb moved, only for its ends."""
        before, now = self._asked, (self._thumb, self._state)
        is_plain = self.is_mounted and repaint and not (regions or layout or recompose)
        if is_plain and now == before:
            return self
        self._asked = now
        if is_plain and before is not None and before[1] == now[1]:
            regions = self._rows_between(before[0], now[0])
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _rows_between(self, before: Thumb, now: Thumb) -> tuple[Region, ...]:
        width, height = self.size
        regions: list[Region] = []
        for ends in zip(before, now, strict=True):
            first, last = (min(end // _PARTS_OF_A_CELL, height - 1) for end in sorted(ends))
            regions.append(Region(0, first, width, last - first + 1))
        return tuple(regions)

    def render_lines(self, crop: Region) -> list[Strip]:
        look = (self._thumb, self._state)
        if look != self._look:
            self._look, self._strips = look, self._painted()
        return self._strips[crop.y : crop.bottom]

    def _painted(self) -> list[Strip]:
        bar = self.render()
        if not isinstance(bar, ScrollBarRender):
            return super().render_lines(self.size.region)
        style = self.app.console.get_style(bar.style)
        if style.color is None or style.bgcolor is None:
            return super().render_lines(self.size.region)
        cells = bar.render_bar(
            size=self.size.height,
            virtual_size=bar.virtual_size,
            window_size=bar.window_size,
            position=bar.position,
            thickness=bar.thickness,
            back_color=style.bgcolor,
            bar_color=style.color,
        )
        base = self.visual_style.rich_style
        strips: dict[Segment, Strip] = {}
        for cell in cells.segments:
            if cell not in strips:
                painted = Segment(cell.text, base + (cell.style or base))
                strips[cell] = self._filtered(Strip([painted], self.size.width))
        return [strips[cell] for cell in cells.segments]

    def _filtered(self, strip: Strip) -> Strip:
        for line_filter in self.get_line_filters():
            strip = strip.apply_filter(line_filter, self.background_colors[1])
        return strip

    @property
    def _state(self) -> tuple[object, ...]:
        """Everything besides the thumb that decides about the picture."""
        return (self.outer_size, self.mouse_over, self.grabbed is not None, self.app.theme, self.thickness)

    @property
    def _thumb(self) -> Thumb:
        """As Textual rounds it."""
        height, rows, window = self.outer_size.height, self.window_virtual_size, self.window_size
        if not height or rows <= window:
            return 0, 0
        length = max(1.0, window * height / rows)
        begin = int((height - length) * self.position / (rows - window) * _PARTS_OF_A_CELL)
        return begin, begin + ceil(length * _PARTS_OF_A_CELL)
