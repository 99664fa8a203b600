"""A form, or an address, that an MCP server asks the person for."""

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from agent.core.events import QuestionAsked
from agent.core.questions import QuestionField, Reply, parsed
from agent.ui.conversation.text import visible
from agent.ui.text import one_line

_HINTS = {"number": "a number", "integer": "a whole number", "yes-no": "yes or no"}


class QuestionScreen(ModalScreen[Reply]):
    """Gives what the person replied. A field is a line; Enter goes to the next, and sends from the last."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave('cancel')", "Not now"),
        Binding("ctrl+n", "leave('decline')", "No", priority=True),
        Binding("enter", "send", "Send", show=False),
    ]

    def __init__(self, question: QuestionAsked) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        asked = self.question
        with Vertical(classes="sheet"):
            yield Static(
                Content.styled(f"The MCP server {one_line(asked.source, 40)} asks", "bold"),
                classes="sheet-title",
            )
            with VerticalScroll(id="question-scroll"):
                yield Static(Content(visible(asked.text)), id="question-text")
                if asked.url:
                    yield Static(
                        Content.assemble("Open this address yourself:\n", (visible(asked.url), "bold"))
                    )
                for number, field in enumerate(asked.fields):
                    yield Static(_label(field), classes="question-label")
                    yield Input(value=_shown(field.default), id=f"question-{number}", compact=True)
            yield Static("", id="question-problem")
            what = "Enter when you have done so" if asked.url else "Enter sends"
            keys = f"{what} · Ctrl+N says no · Esc goes back without an answer"
            yield Static(Content.styled(keys, "$quiet"), classes="sheet-foot")

    def on_mount(self) -> None:
        if self.question.fields:
            self.query_one("#question-0", Input).focus()
        else:
            self.query_one("#question-scroll").focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        number = int(str(event.input.id).rpartition("-")[2])
        if number + 1 < len(self.question.fields):
            self.query_one(f"#question-{number + 1}", Input).focus()
        else:
            self.action_send()

    def action_send(self) -> None:
        values: dict[str, Any] = {}
        for number, field in enumerate(self.question.fields):
            entry = self.query_one(f"#question-{number}", Input)
            try:
                values[field.name] = parsed(entry.value, field)
            except ValueError as error:
                self._complain(entry, f"{field.title}: {error}")
                return
            if field.required and values[field.name] is None:
                self._complain(entry, f"{field.title} is needed")
                return
        self.dismiss(Reply("accept", values))

    def action_leave(self, action: str) -> None:
        self.dismiss(Reply("decline" if action == "decline" else "cancel"))

    def _complain(self, entry: Input, text: str) -> None:
        self.query_one("#question-problem", Static).update(
            Content.styled(f"! {one_line(text, 200)}", "$text-error")
        )
        entry.focus()


def _label(field: QuestionField) -> Content:
    """The title, whether it is needed, and what can be written."""
    listed = ", ".join(value if value == shown else f"{value} ({shown})" for value, shown in field.options)
    several = " (several, with commas)" if field.kind == "choices" else ""
    notes = [field.description, listed and f"one of {listed}{several}", _HINTS.get(field.kind, "")]
    more = "; ".join(one_line(note, 300) for note in notes if note)
    needed = " *" if field.required else ""
    return Content.assemble(f"{one_line(field.title, 80)}{needed}", (f"  {more}" if more else "", "$quiet"))


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)
