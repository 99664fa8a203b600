"""A list to choose from, with a field that narrows it."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from agent.ui.conversation.text import visible
from agent.ui.entry.fuzzy import best
from agent.ui.widgets.menu import Choice

MOST_SHOWN = 200
# As in app.tcss: how wide a sheet is at most, and its padding with a scroll bar.
_WIDEST_SHEET, _BESIDE_ROWS = 120, 6


class PickerScreen(ModalScreen[Choice | None]):
    """Gives the choice, or None when the person goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "Back"),
        Binding("down,ctrl+n", "move(1)", show=False),
        Binding("up,ctrl+p", "move(-1)", show=False),
        # Letters narrow the list, so these two move in it. The field would take the second for itself.
        Binding("ctrl+j", "move(1)", show=False, priority=True),
        Binding("ctrl+k", "move(-1)", show=False, priority=True),
    ]

    def __init__(self, title: str, choices: Sequence[Choice], query: str = "") -> None:
        super().__init__()
        self._title = title
        self._query = query
        self.choices = choices
        self._shown: list[Choice] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(Content.styled(self._title, "bold"), classes="sheet-title")
            yield Input(value=self._query, placeholder="Type to narrow", id="picker-query", compact=True)
            yield OptionList(id="picker-list", markup=False, compact=True)

    def on_mount(self) -> None:
        self.query_one(OptionList).can_focus = False
        self._narrow(self._query)
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._narrow(event.value)

    def on_input_submitted(self) -> None:
        highlighted = self.query_one(OptionList).highlighted
        self.dismiss(self._shown[highlighted] if highlighted is not None and self._shown else None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._shown[event.option_index])

    def on_key(self, event: events.Key) -> None:
        if event.key in ("pageup", "pagedown"):
            event.stop()
            self.action_move(-10 if event.key == "pageup" else 10)

    def action_move(self, by: int) -> None:
        options = self.query_one(OptionList)
        if self._shown:
            at = (options.highlighted or 0) + by
            options.highlighted = max(0, min(len(self._shown) - 1, at))

    def action_leave(self) -> None:
        self.dismiss(None)

    def _narrow(self, query: str) -> None:
        texts = {f"{choice.label} {choice.note} {choice.more}": choice for choice in self.choices}
        self._shown = [texts[text] for text in best(query, list(texts), MOST_SHOWN)]
        options = self.query_one(OptionList)
        options.clear_options()
        wide = min(max((cell_len(choice.label) for choice in self._shown), default=0), 40)
        room = min(self.app.size.width, _WIDEST_SHEET) - _BESIDE_ROWS
        options.add_options([Option(_prompt(choice, wide, room)) for choice in self._shown])
        options.highlighted = 0 if self._shown else None


def _prompt(choice: Choice, wide: int, room: int) -> Content:
    """One row; `room` is its width in cells."""
    label = visible(choice.label).replace("\n", " ⏎ ")
    if not choice.note:
        return Content(label)
    padding = " " * (max(0, wide - cell_len(label)) + 2)
    row = Content.assemble(label, padding, (visible(choice.note), "$quiet"))
    left = room - row.cell_length - 2
    if not choice.more or left < 1:
        return row
    more = Content(visible(choice.more)).truncate(left, ellipsis=True)
    return Content.assemble(row, "  ", more.stylize("$quiet"))
