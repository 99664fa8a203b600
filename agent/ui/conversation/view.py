"""The conversation as a person uses it: blocks are chosen, opened and copied; typing goes to the input."""

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.selection import Selection

from agent.ui.conversation.block import Block
from agent.ui.conversation.canvas import ConversationCanvas
from agent.ui.conversation.keys import KEYS
from agent.ui.conversation.strips import selected_text


class ConversationView(ConversationCanvas, can_focus=True):
    """Shows events as they come, follows the end unless the person scrolled up.

    Feed it with `show`; `add_user`, `clear`, `load_history`, `toggle_reasoning` and `copy_last` are for the
    shell around it. It never writes to the clipboard: it posts `CopyRequested`.
    """

    DEFAULT_CSS = """
    ConversationView {
        background: $background;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        scrollbar-color: $panel;
        scrollbar-color-hover: $primary;
        scrollbar-color-active: $primary;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = list(KEYS)

    @dataclass
    class CopyRequested(Message):
        """Somebody wants `text` in the clipboard."""

        text: str

    @dataclass
    class Left(Message):
        """The person goes back to the input field, where `typed` belongs."""

        typed: str = ""

    # Choosing, opening, copying

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected rows as text, for Textual's own copying."""
        return selected_text(self._document, selection), "\n"

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y
        index = self._document.at(row)
        if index < 0 or row >= self._document.height or self.text_selection is not None:
            return
        block = self._document.blocks[index]
        inside = row - self._document.top_of(index)
        if block.is_foldable and (inside == block.gap or inside == len(block.lines) - 1):
            self._toggle(block)

    def action_line(self, direction: int) -> None:
        self._scroll_by(direction)

    def action_page(self, direction: int) -> None:
        self._scroll_by(direction * max(self._visible_rows - 2, 1))

    def action_begin(self) -> None:
        self._go_to(0)

    def action_jump_to_end(self) -> None:
        """Goes to the end and follows it from now on."""
        self._follow(True)
        self._settle()

    def _scroll_by(self, rows: int) -> None:
        self._go_to(round(self.scroll_y) + rows)

    def action_choose(self, direction: int) -> None:
        """Marks the next block that can be copied or opened, the last one in view to begin with."""
        block = self._chooser.move(direction, self._last_visible_row)
        if block is not None:
            self._bring_into_view(block)
            self.refresh()

    @property
    def _last_visible_row(self) -> int:
        return round(self.scroll_y) + self._visible_rows - 1

    def _bring_into_view(self, block: Block) -> None:
        document = self._document
        top = document.top_of(block.index)
        document.prepare(top, top + 1)
        end = document.top_of(block.index) + len(block.lines)
        self._set_height()
        first = round(self.scroll_y)
        if top < first or len(block.lines) >= self._visible_rows:
            self._go_to(top)
        elif end > first + self._visible_rows:
            self._go_to(end - self._visible_rows)

    def action_toggle_block(self) -> None:
        block = self._chooser.block
        if block is not None:
            self._toggle(block)

    def _toggle(self, block: Block) -> None:
        if not block.toggle():
            return
        document = self._document
        document.refresh(block)
        top = document.top_of(block.index)
        if not self._follows and top < round(self.scroll_y):
            self._go_to(top)
        self._settle()
        self.refresh()

    def action_toggle_reasoning(self) -> None:
        self.toggle_reasoning()

    def action_copy_block(self) -> None:
        """Asks for the chosen block in the clipboard, for the last reply if none is chosen."""
        self._ask_to_copy(self._chooser.text(self.copy_last()))

    def action_copy_code(self) -> None:
        """Asks for the chosen code block, or the last one at or above the end of the view."""
        self._ask_to_copy(self._chooser.code(self._last_visible_row))

    def _ask_to_copy(self, text: str) -> None:
        if text:
            self.post_message(self.CopyRequested(text))

    def action_leave(self) -> None:
        """Gives the focus back, and lets go of the chosen block."""
        self._chooser.clear()
        self.refresh()
        self.post_message(self.Left())

    def on_key(self, event: events.Key) -> None:
        if event.is_printable and event.character and event.key not in self.screen.active_bindings:
            event.stop()
            self.post_message(self.Left(event.character))

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self.post_message(self.Left(event.text))
