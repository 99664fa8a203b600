"""Which block of a conversation is chosen, and what of it is copied."""

from agent.ui.conversation.block import Block
from agent.ui.conversation.document import Document
from agent.ui.conversation.pieces import Code, whole_code


class Chooser:
    """At most one block of `document` is chosen; none when it has left the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._block: Block | None = None

    @property
    def block(self) -> Block | None:
        return self._block if self._block is not None and self._block.index >= 0 else None

    def clear(self) -> None:
        self._block = None

    def move(self, direction: int, last_visible_row: int) -> Block | None:
        """Chooses the next block, the last one in view to begin with. None where there is no further one."""
        document, block = self._document, self.block
        index = block.index + direction if block is not None else document.at(last_visible_row)
        if not 0 <= index < len(document):
            return None
        inner = document.blocks[index].unfold()
        if inner is not None:
            document.replace(index, inner)
            index += len(inner) - 1 if direction < 0 else 0
        self._block = document.blocks[index]
        return self._block

    def has_row(self, row: int) -> bool:
        """Whether `row` of the document belongs to the chosen block."""
        block = self.block
        if block is None:
            return False
        return self._document.at(row) == block.index and row - self._document.top_of(block.index) >= block.gap

    def text(self, otherwise: str) -> str:
        """The chosen block as text, `otherwise` where none is chosen."""
        block = self.block
        if isinstance(block, Code):
            return whole_code(self._document.blocks, block)
        return block.copy_text() if block is not None else otherwise

    def code(self, last_visible_row: int) -> str:
        """The chosen block of code, or the last one at or above the end of the view; empty if none is."""
        block = self.block
        start = block.index if block is not None else self._document.at(last_visible_row)
        for index in range(start, -1, -1):
            code = self._document.blocks[index]
            if isinstance(code, Code):
                return whole_code(self._document.blocks, code)
        return ""
