"""The list of blocks and where each stands, with only the ones near the view laid out.

A block that is not laid out counts with an estimate of its height. `prepare` lays out what the view is about
to show; the difference to the estimate is handed back so that the view can stay where it was. What is far
from the view is forgotten again, so that memory depends on the screen and not on the history.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate

from agent.ui.conversation.block import Block
from agent.ui.conversation.line import Line

MOST_RENDERED_BLOCKS = 400
MOST_RENDERED_ROWS = 20_000


class Document:
    """Blocks from top to bottom. Rows are counted from 0 at the very top."""

    def __init__(self, width: int = 80) -> None:
        self.blocks: list[Block] = []
        self.width = width
        self._heights: list[int] = []
        self._tops: list[int] = [0]
        self._valid = 0  # `_tops` is right up to and including this index
        self._near: OrderedDict[int, Block] = OrderedDict()  # the laid out ones, longest unused first
        self._rows = 0
        self._first_changed: int | None = None

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def height(self) -> int:
        return self.top_of(len(self.blocks))

    @property
    def rendered_blocks(self) -> int:
        return len(self._near)

    def top_of(self, index: int) -> int:
        """The row at which block `index` begins."""
        if index > self._valid:
            start = self._valid
            self._tops[start:] = accumulate(self._heights[start:], initial=self._tops[start])
            self._valid = len(self.blocks)
        return self._tops[index]

    def append(self, block: Block) -> None:
        block.index = len(self.blocks)
        self.blocks.append(block)
        self._heights.append(max(block.estimate(self.width), 1))

    def extend(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            self.append(block)

    def remove_last(self) -> None:
        self._changed(self.top_of(len(self.blocks) - 1))
        block = self.blocks.pop()
        self._heights.pop()
        self._forget(block)
        self._invalidate(len(self.blocks))
        del self._tops[len(self.blocks) + 1 :]
        block.index = -1

    def replace(self, index: int, blocks: Sequence[Block]) -> None:
        """Puts `blocks` where block `index` was."""
        self._changed(self.top_of(index))
        self._forget(self.blocks[index])
        self.blocks[index].index = -1
        self.blocks[index : index + 1] = blocks
        self._heights[index : index + 1] = [max(block.estimate(self.width), 1) for block in blocks]
        for place in range(index, len(self.blocks)):
            self.blocks[place].index = place
        self._invalidate(index)

    def refresh(self, block: Block) -> None:
        """Takes note that a block's content changed; it is laid out at once only if it is near the view."""
        if block.index < 0:
            return
        if not block.is_rendered:
            self._set_height(block.index, max(block.estimate(self.width), 1))
            self._changed(self.top_of(block.index))
            return
        self._lay_out(block)

    def _lay_out(self, block: Block) -> None:
        before = len(block.lines)
        first = block.refresh(self.width)
        self._keep(block, before)
        self._set_height(block.index, len(block.lines))
        self._changed(self.top_of(block.index) + first)

    def note_all_changed(self) -> None:
        """For a document that replaces another one on the screen."""
        self._changed(0)

    def take_changed(self) -> int | None:
        """The first row that looks different since the last time, None if none does."""
        changed, self._first_changed = self._first_changed, None
        return changed

    def _changed(self, row: int) -> None:
        self._first_changed = row if self._first_changed is None else min(self._first_changed, row)

    def resize(self, width: int) -> None:
        """Every row is made for another width from now on."""
        for block in list(self._near.values()):
            self._forget(block)
        self.width = width
        self._changed(0)
        self._heights = [max(block.estimate(width), 1) for block in self.blocks]
        self._invalidate(0)

    def at(self, row: int) -> int:
        """The index of the block that covers `row`; the nearest one for a row outside."""
        if not self.blocks:
            return -1
        self.top_of(len(self.blocks))
        return min(max(bisect_right(self._tops, row) - 1, 0), len(self.blocks) - 1)

    def prepare(self, first: int, last: int) -> int:
        """Lays out what covers the rows `first` to `last`.

        Returns:
            How many rows all that lies above `first` grew.
        """
        if not self.blocks:
            return 0
        anchor = self.at(first)
        # A view that begins with a block stays at its beginning. Otherwise its lower part stays in place.
        is_cut = first > self.top_of(anchor)
        below = self.blocks[anchor + 1] if anchor + 1 < len(self.blocks) else None
        before = self.top_of(anchor + 1)
        after: int | None = None
        index = anchor
        while index < len(self.blocks) and self.top_of(index) <= last:
            block = self.blocks[index]
            if block is below:
                after = self.top_of(index)  # now, as it may be replaced by its pieces
            inner = block.unfold() if not block.is_rendered else None
            if inner is not None:
                self.replace(index, inner)
                continue
            self._show(block)
            index += 1
        if after is None:
            after = self.top_of(below.index) if below is not None else self.height
        self._trim()
        return after - before if is_cut else 0

    def plain_text(self) -> str:
        """Every row as text. What was not laid out before is not afterwards."""
        rows: list[str] = []
        for block in list(self.blocks):
            for part in block.unfold() or (block,):
                was_rendered = part.is_rendered
                if not was_rendered:
                    part.refresh(self.width)
                rows.extend(line.text.rstrip() for line in part.lines)
                if not was_rendered:
                    part.drop()
        return "\n".join(rows)

    def line(self, row: int) -> Line | None:
        """The row for the screen; None outside, or where nothing was prepared."""
        return self.rows(row, 1)[0]

    def rows(self, first: int, count: int) -> list[Line | None]:
        """`count` rows from `first` on, each as `line` gives it."""
        found: list[Line | None] = [None] * min(max(-first, 0), count)
        row, index = max(first, 0), self.at(max(first, 0))
        while len(found) < count and 0 <= index < len(self.blocks):
            inside, end = row - self.top_of(index), self.top_of(index + 1)
            here = min(end - row, count - len(found))
            lines = self.blocks[index].lines[inside : inside + here] if here > 0 else []
            found.extend(lines)
            found.extend([None] * (here - len(lines)))
            row, index = max(end, row), index + 1
        return found + [None] * (count - len(found))

    def _show(self, block: Block) -> None:
        if block.is_rendered and block.width == self.width:
            self._near.move_to_end(id(block))
            return
        self._lay_out(block)

    def _keep(self, block: Block, rows_before: int) -> None:
        known = id(block) in self._near
        self._rows += len(block.lines) - (rows_before if known else 0)
        self._near[id(block)] = block
        self._near.move_to_end(id(block))

    def _forget(self, block: Block) -> None:
        if self._near.pop(id(block), None) is not None:
            self._rows -= len(block.lines)
        block.drop()

    def _trim(self) -> None:
        while len(self._near) > MOST_RENDERED_BLOCKS or (
            self._rows > MOST_RENDERED_ROWS and len(self._near) > 8
        ):
            self._forget(next(iter(self._near.values())))

    def _set_height(self, index: int, height: int) -> None:
        if self._heights[index] != height:
            self._heights[index] = height
            self._invalidate(index)

    def _invalidate(self, index: int) -> None:
        self._valid = min(self._valid, index)
