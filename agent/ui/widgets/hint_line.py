"""The row under the input field: the keys that matter now, and whether there is more below."""

from collections.abc import Callable, Sequence
from typing import Literal

from textual.content import Content
from textual.widget import Widget

Hint = tuple[str, str]
"""A key and what it does."""

MORE = "↓ more below"
GAP = 3
NARROW_GAP = 2


class HintLine(Widget):
    """As many hints as fit: the last one, which is help, and the first ones.

    A message takes their place until it is cleared.
    """

    can_focus = False

    def __init__(self) -> None:
        super().__init__(id="hints")
        self._hints: Sequence[Hint] = ()
        self._is_more = False

    def show(self, hints: Sequence[Hint], *, is_more: bool) -> None:
        if (hints, is_more) != (self._hints, self._is_more):
            self._hints, self._is_more = hints, is_more
            self.set_class(is_more, "-more")
            self.refresh()

    def render(self) -> Content:
        width = self.content_size.width
        right = Content.styled(MORE, "$text-accent") if self._is_more else Content("")
        room = width - right.cell_length - (GAP if self._is_more else 0)
        left = self._fitting(room)
        padding = " " * max(width - left.cell_length - right.cell_length, 0)
        return Content.assemble(left, padding, right)

    def _fitting(self, room: int) -> Content:
        few = list(self._hints)
        gap = GAP
        while len(few) > 1 and _row(few, gap).cell_length > room:
            if gap == GAP:
                gap = NARROW_GAP
            else:
                del few[-2]
        row = _row(few, gap)
        return row if row.cell_length <= room else Content("")


def _row(hints: Sequence[Hint], gap: int) -> Content:
    parts = [Content.assemble((key, "$text-muted"), " ", (what, "$quiet")) for key, what in hints]
    return Content(" " * gap).join(parts)


def hints_for(
    key: Callable[[str], str],
    *,
    is_running: bool,
    is_asking: bool,
    has_conversation: bool,
    in_conversation: bool,
    in_question: Literal["", "choices", "reason"] = "",
    is_busy: bool = False,
) -> list[Hint]:
    """What can be done now. `key` gives the key of a binding by its id; `in_question`: where keys go.

    `is_busy` says that a command of the person's runs, such as `!make test`.
    """
    conversation = [(key("complete"), "conversation")] if has_conversation else []
    if in_conversation:
        return [
            (key("conversation.leave"), "back"),
            (f"{key('conversation.previous')} {key('conversation.next')}", "choose a block"),
            (key("conversation.toggle"), "opens it"),
            (key("conversation.copy"), "copies it"),
            (key("conversation.copy-code"), "copies code"),
            (key("conversation.end"), "end"),
            (key("help"), "help"),
        ]
    if in_question == "reason":
        return [("Enter", "denies"), ("Esc", "back"), (key("help"), "help")]
    if in_question:
        return [
            ("←→ Enter", "answers"),
            ("↑↓", "scroll"),
            ("Tab", "to the input"),
            ("Esc", "interrupts"),
            (key("help"), "help"),
        ]
    if is_asking:
        return [(key("complete"), "to the question"), (key("interrupt"), "interrupts"), (key("help"), "help")]
    if is_running:
        return [
            (key("interrupt"), "interrupts"),
            (key("send"), "steers"),
            (key("send-later"), "queues"),
            *conversation,
            (key("help"), "help"),
        ]
    return [
        *([(key("interrupt"), "interrupts")] if is_busy else []),
        ("/", "commands"),
        ("@", "files"),
        ("!", "shell"),
        (key("next-mode"), "mode"),
        *conversation,
        (key("help"), "help"),
    ]
