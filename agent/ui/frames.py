"""The main screen, which draws no more than what changed.

Textual renders every widget between the first and the last row that changed, the hidden ones too. While a
reply streams, the conversation and the status bar change together, and all else lies between them.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Protocol, runtime_checkable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.control import Control
from textual._compositor import Compositor, CompositorUpdate
from textual._context import visible_screen_stack
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

Piece = tuple[int, int, Strip]
"""Column and row of the screen, and what stands there."""


@runtime_checkable
class Drawn(Protocol):
    """A widget that knows a cheaper way to be drawn than `render_lines`, which is for the mouse too."""

    def draw_lines(self, crop: Region) -> list[Strip]: ...


class Frame(CompositorUpdate):
    """What is drawn at once."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = pieces

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for x, y, strip in self.pieces:
            yield Control.move_to(x, y).segment
            yield from strip

    def render_segments(self, console: Console) -> str:
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, y, strip in self.pieces)


class ThriftyCompositor(Compositor):
    """Asks each widget only for the part of it that is seen and that changed."""

    def render_update(
        self, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
    ) -> RenderableType | None:
        if full or self.size.region in self._dirty_regions:
            return super().render_update(full, screen_stack, simplify)
        visible_screen_stack.set(screen_stack or [])
        changed = _outermost(self._dirty_regions)
        self._dirty_regions.clear()
        pieces = [piece for region in changed for piece in self._draw(region)]
        # A terminal that shows what it gets at once shows it from top to bottom.
        return Frame(sorted(pieces, key=itemgetter(1, 0))) if pieces else None

    def _draw(self, changed: Region) -> list[Piece]:
        pieces: list[Piece] = []
        rest = [part] if (part := changed.intersection(self.size.region)) else []
        for widget, (region, clip) in self.visible_widgets.items():  # from front to back
            if not rest:
                break
            seen = region.intersection(clip)
            if not seen.overlaps(changed):
                continue
            left: list[Region] = []
            for part in rest:
                drawn = seen.intersection(part)
                if drawn:
                    draw = widget.draw_lines if isinstance(widget, Drawn) else widget.render_lines
                    strips = draw(drawn.translate(-region.offset))
                    drawn = drawn.crop_size((drawn.width, len(strips)))
                    pieces.extend(_placed(strips, drawn))
                left.extend(without(part, drawn))
            rest = left
        return pieces


class MainScreen(Screen[Any]):
    """The one that everything else opens above."""

    def __init__(self) -> None:
        super().__init__(id="_default")
        self._compositor = ThriftyCompositor()


def without(region: Region, hole: Region) -> list[Region]:
    """What is left of `region` beside `hole`, which lies in it, as regions that do not overlap."""
    if not hole:
        return [region]
    x, width = region.x, region.width
    parts = (
        Region(x, region.y, width, hole.y - region.y),
        Region(x, hole.bottom, width, region.bottom - hole.bottom),
        Region(x, hole.y, hole.x - x, hole.height),
        Region(hole.right, hole.y, region.right - hole.right, hole.height),
    )
    return [part for part in parts if part]


def _outermost(regions: Iterable[Region]) -> list[Region]:
    """Without those that lie in another one, which would be drawn twice."""
    kept: list[Region] = []
    for region in sorted(regions, key=lambda region: -region.area):
        if not any(other.contains_region(region) for other in kept):
            kept.append(region)
    return kept


def _placed(strips: Sequence[Strip], region: Region) -> Iterable[Piece]:
    for y, strip in zip(region.line_range, strips, strict=True):
        whole = strip.cell_length == region.width
        yield region.x, y, strip if whole else strip.adjust_cell_length(region.width)
