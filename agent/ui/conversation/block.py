"""What the conversation is a list of: something that can say how high it is and draw its rows."""

from collections.abc import Sequence

from agent.ui.conversation.line import Line

MARGIN = "  "
"""Left of everything; the first cell is where the view marks the chosen block."""
PROSE_CELLS = 100
"""Longest row of prose. Longer ones are hard to read, however wide the terminal is."""


def prose_cells(width: int) -> int:
    """How wide prose is drawn in a view of `width` cells: never up to the scroll bar."""
    return max(min(width - 2, PROSE_CELLS), 12)


class Block:
    """Rows with one subject. `lines` holds them while the block is near the view, and is empty otherwise.

    Attributes:
        gap: whether a blank row sets it off from the block above; that row is part of `lines`.
        width: the cells that `lines` were made for.
        index: its place in the document, kept by the document.
    """

    gap = True
    is_foldable = False

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.width = 0
        self.index = -1

    @property
    def is_rendered(self) -> bool:
        return bool(self.lines)

    def estimate(self, width: int) -> int:
        """About how many rows it will have, at a cost that does not show for thousands of blocks."""
        return 1 + self.gap

    def render(self, width: int) -> list[Line]:
        """All rows without the gap. At least one."""
        raise NotImplementedError

    def unfold(self) -> "Sequence[Block] | None":
        """The blocks to put in its place before it is drawn, None for most: it draws itself."""
        return None

    def refresh(self, width: int) -> int:
        """Brings `lines` up to date; returns the first row that changed (their number if none did)."""
        fresh = ([Line()] if self.gap else []) + self.render(width)
        same = 0
        if self.width == width:
            for old, new in zip(self.lines, fresh, strict=False):
                if not old.same_as(new):
                    break
                fresh[same] = old
                same += 1
        first = same if same < len(fresh) or same < len(self.lines) else len(fresh)
        self.lines = fresh
        self.width = width
        return first

    def drop(self) -> None:
        """Forgets the rows; they are made again when they are needed."""
        self.lines = []
        self.width = 0

    def toggle(self) -> bool:
        """Opens or closes it; False if there is nothing to open."""
        return False

    def copy_text(self) -> str:
        """Its text as it was written, for the clipboard."""
        return ""
