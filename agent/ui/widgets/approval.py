"""The panel above the input field in which a call of a tool waits for a person."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from agent.core.events import ApprovalRequest
from agent.core.handle import Answer
from agent.ui.request_text import described, heading
from agent.ui.text import one_line
from agent.ui.widgets.room import leave_room

Choice = Literal["once", "session", "always", "deny"]

GRACE_SECONDS = 0.6
"""A person who starts to type when the panel appears must not answer it by accident."""

_KEYS: dict[str, Choice] = {
    "1": "once",
    "y": "once",
    "2": "session",
    "s": "session",
    "3": "always",
    "a": "always",
    "4": "deny",
    "n": "deny",
    "d": "deny",
}


MOST_DETAIL = 0.4
"""Of the rows, for what is asked about."""


class ApprovalPanel(Vertical):
    """Shows the oldest open request and how many wait behind it."""

    can_focus = True

    @dataclass
    class Answered(Message):
        request_id: str
        answer: Answer

    @dataclass
    class Typed(Message):
        """A key that is no answer: it belongs into the input field, as does the focus."""

        text: str

    @dataclass
    class Left(Message):
        """The person wants to go on typing, or to interrupt the turn."""

        what: Literal["input", "interrupt"]

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(id="approval")
        self._clock = clock
        self._requests: list[ApprovalRequest] = []
        self._shown_at = 0.0
        self._chosen = 0
        self.display = False

    def compose(self) -> ComposeResult:
        yield Static(id="approval-heading")
        with VerticalScroll(id="approval-detail", can_focus=False):
            yield Static(id="approval-text")
        yield Static(id="approval-choices")
        yield Input(
            id="approval-reason", placeholder="Why not? The model reads it. Enter denies, Esc goes back"
        )

    @property
    def current(self) -> ApprovalRequest | None:
        return self._requests[0] if self._requests else None

    @property
    def waiting(self) -> int:
        return len(self._requests)

    def add(self, request: ApprovalRequest) -> None:
        self._requests.append(request)
        if len(self._requests) == 1:
            self._show_current()
        else:
            self._show_heading()

    def settle(self, request_id: str) -> None:
        """The request is no longer open, whoever answered it."""
        current = self.current
        self._requests = [request for request in self._requests if request.request_id != request_id]
        if self.current is not current:
            self._show_current()
        else:
            self._show_heading()

    def clear(self) -> None:
        self._requests = []
        self._show_current()

    def on_mount(self) -> None:
        self._reason.display = False
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self._make_room())

    def _make_room(self) -> None:
        if self.display:
            leave_room(self, self.query_one("#approval-detail"), MOST_DETAIL)

    @property
    def part_with_focus(self) -> Literal["", "choices", "reason"]:
        """Where a key that is pressed now goes to."""
        if not self.is_attached:  # not yet, or no longer: the program is ending
            return ""
        focused = self.screen.focused  # `has_focus` follows only after it
        if focused is self:
            return "choices"
        return "reason" if focused is not None and focused.id == "approval-reason" else ""

    @property
    def _reason(self) -> Input:
        return self.query_one("#approval-reason", Input)

    @property
    def _choices(self) -> list[tuple[Choice, str]]:
        request = self.current
        if request is None or not request.suggested_rule:
            return [("once", "yes"), ("deny", "no, and say why")]
        return [
            ("once", "yes"),
            ("session", "this session"),
            ("always", "always"),
            ("deny", "no, and say why"),
        ]

    def _show_current(self) -> None:
        request = self.current
        self.display = request is not None
        self._chosen = 0
        self._shown_at = self._clock()
        if request is None:
            if self.has_focus or self._reason.has_focus:
                self.post_message(self.Left("input"))
            return
        if self._reason.has_focus:
            self.focus()
        self._reason.display = False
        self._show_heading()
        self.query_one("#approval-text", Static).update(described(request))
        self.query_one("#approval-detail", VerticalScroll).scroll_home(animate=False)
        self._show_choices()

    def _show_heading(self) -> None:
        if self.current is not None:
            self.query_one("#approval-heading", Static).update(heading(self.current, len(self._requests) - 1))

    def _show_choices(self) -> None:
        digits: dict[Choice, str] = {"once": "1", "session": "2", "always": "3", "deny": "4"}
        parts = []
        for at, (choice, label) in enumerate(self._choices):
            is_chosen = at == self._chosen and self.has_focus
            style = "bold $text on $primary-muted" if is_chosen else "$text"
            parts.append(Content.assemble((digits[choice], "bold $text-primary"), (f" {label} ", style)))
        hint = "" if self.has_focus or self._reason.display else "  Tab to answer"
        line = Content.assemble(Content("  ").join(parts), (hint, "$quiet"))
        rule = one_line(self.current.suggested_rule) if self.current else ""
        allowed = Content.styled(f"\n2 and 3 allow {rule}" if rule else "", "$quiet")
        self.query_one("#approval-choices", Static).update(Content.assemble(line, allowed))

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        if self.is_mounted:
            self._show_choices()

    def on_key(self, event: events.Key) -> None:
        if not self.has_focus:
            if event.key == "escape" and self._reason.has_focus:
                event.stop()
                self._reason.display = False
                self.focus()
            return
        if self._move(event.key):
            event.stop()
            return
        is_early = self._clock() - self._shown_at < GRACE_SECONDS
        choice = None if is_early else _KEYS.get(event.key)
        if event.key == "enter" and not is_early:
            choice = self._choices[self._chosen][0]
        if choice in [known for known, _ in self._choices]:
            event.stop()
            self._choose(choice)
        elif event.is_printable and event.character:
            event.stop()
            self.post_message(self.Typed(event.character))
        elif event.key in ("tab", "shift+tab"):
            event.stop()
            self.post_message(self.Left("input"))
        elif event.key == "escape":
            event.stop()
            self.post_message(self.Left("interrupt"))

    def on_paste(self, event: events.Paste) -> None:
        if self.has_focus:
            event.stop()
            self.post_message(self.Typed(event.text))

    def _move(self, key: str) -> bool:
        detail = self.query_one("#approval-detail", VerticalScroll)
        if key in ("left", "right"):
            self._chosen = (self._chosen + (1 if key == "right" else -1)) % len(self._choices)
            self._show_choices()
        elif key == "up":
            detail.scroll_up(animate=False)
        elif key == "down":
            detail.scroll_down(animate=False)
        elif key == "pageup":
            detail.scroll_page_up(animate=False)
        elif key == "pagedown":
            detail.scroll_page_down(animate=False)
        else:
            return False
        return True

    def _choose(self, choice: Choice | None) -> None:
        if choice == "deny":
            self._reason.value = ""
            self._reason.display = True
            self._reason.focus()
        elif choice is not None:
            self._answer(Answer(kind=choice, rule=self.current.suggested_rule if self.current else ""))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._answer(Answer(kind="deny", reason=event.value.strip()))

    def _answer(self, answer: Answer) -> None:
        request = self.current
        if request is None:
            return
        self.settle(request.request_id)
        self.post_message(self.Answered(request.request_id, answer))
