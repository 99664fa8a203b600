"""The list above the input field: commands or files that fit what is typed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widget import Widget

from agent.ui.conversation.text import visible
from agent.ui.entry.completion import Completable
from agent.ui.entry.fuzzy import positions

MOST_ROWS = 8


@dataclass(frozen=True, slots=True)
class Choice:
    """`value` is what is put into the text, `label` what is shown, `note` explains it.

    `more` follows the note as far as the row has room.
    """

    value: str
    label: str
    note: str = ""
    more: str = ""


class Menu(Widget):
    """Shows choices and which of them is chosen; the input field keeps the focus and the keys."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__(id="menu")
        self.choices: Sequence[Choice] = ()
        self.chosen = 0
        self.target: Completable | None = None
        self.display = False
        self._awaited: tuple[Completable, Callable[[], None]] | None = None

    @property
    def choice(self) -> Choice | None:
        return self.choices[self.chosen] if self.choices else None

    def open(self, choices: Sequence[Choice], target: Completable) -> None:
        """Shows `choices` for `target`; without any the menu closes."""
        before = self.choice
        self.choices = choices
        self.target = target
        values = [choice.value for choice in choices]
        self.chosen = values.index(before.value) if before and self.chosen and before.value in values else 0
        self.display = bool(choices)
        self.styles.height = min(len(choices), MOST_ROWS)
        self.refresh(layout=True)
        awaited, self._awaited = self._awaited, None
        if awaited is not None and awaited[0] == target and choices:
            awaited[1]()

    def when_open(self, target: Completable, act: Callable[[], None]) -> None:
        """Calls `act` if the menu opens for `target` before it does for something else."""
        self._awaited = (target, act)

    def close(self) -> None:
        self._awaited = None
        self.choices = ()
        self.chosen = 0
        self.target = None
        self.display = False

    def move(self, by: int) -> None:
        if self.choices:
            self.chosen = (self.chosen + by) % len(self.choices)
            self.refresh()

    def render(self) -> Content:
        first = min(max(0, self.chosen - MOST_ROWS + 2), max(0, len(self.choices) - MOST_ROWS))
        rows = self.choices[first : first + MOST_ROWS]
        width = self.content_size.width
        names = min(
            max((cell_len(choice.label) for choice in self.choices), default=0), max(12, width * 2 // 3)
        )
        lines = [
            self._line(choice, is_chosen=first + at == self.chosen, names=names, width=width)
            for at, choice in enumerate(rows)
        ]
        return Content("\n").join(lines)

    def _line(self, choice: Choice, *, is_chosen: bool, names: int, width: int) -> Content:
        label = visible(choice.label)
        if cell_len(label) > names:  # of a long path the end says more
            while cell_len(label) > names - 1:
                label = label[1:]
            label = "…" + label
        shown = Content(label)
        for place in positions(self.target.query if self.target else "", label):
            shown = shown.stylize("bold $primary" if not is_chosen else "bold", place, place + 1)
        padding = " " * (names - cell_len(label) + 2)
        note = set_cell_size(visible(choice.note), max(0, width - names - 4)).rstrip() if choice.note else ""
        mark = "▸ " if is_chosen else "  "
        line = Content.assemble(mark, shown, padding, (note, "$quiet"))
        if not is_chosen:
            return line
        return line.pad_right(max(0, width - line.cell_length)).stylize_before("$text on $primary-muted")
