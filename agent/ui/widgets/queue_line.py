"""Texts that wait for the running turn, or for its end."""

from textual.content import Content
from textual.widget import Widget

from agent.ui.text import one_line

MOST_ROWS = 4


class QueueLine(Widget):
    """A row for each waiting text; gone when none waits."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__(id="queue")
        self._rows: list[tuple[str, str]] = []
        self.display = False

    def show(self, steering: tuple[str, ...], follow_ups: tuple[str, ...]) -> None:
        rows = [("↳ next chance", text) for text in steering] + [
            ("⇢ after this", text) for text in follow_ups
        ]
        if rows == self._rows:
            return
        self._rows = rows
        self.display = bool(rows)
        self.styles.height = min(len(rows), MOST_ROWS)
        self.refresh(layout=True)

    def render(self) -> Content:
        width = self.content_size.width
        shown = self._rows[:MOST_ROWS]
        if len(self._rows) > MOST_ROWS:
            shown = [*self._rows[: MOST_ROWS - 1], ("", f"… and {len(self._rows) - MOST_ROWS + 1} more")]
        lines = [
            Content.assemble((label.ljust(14), "$text-accent"), (one_line(text), "$quiet")).truncate(
                width, ellipsis=True
            )
            for label, text in shown
        ]
        return Content("\n").join(lines)
