"""A page of text to read and close again."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agent.ui.conversation.text import visible


class PageScreen(ModalScreen[None]):
    """Scrolls with arrows, page keys, and j, k, g, G."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c,enter", "leave", "Back"),
        Binding("j,down", "scroll('down')", show=False),
        Binding("k,up", "scroll('up')", show=False),
        Binding("g,home", "scroll('home')", show=False),
        Binding("G,end", "scroll('end')", show=False),
        Binding("space,pagedown,ctrl+f,ctrl+d", "scroll('page_down')", show=False),
        Binding("pageup,ctrl+b,ctrl+u", "scroll('page_up')", show=False),
    ]

    def __init__(self, title: str, text: str | Content) -> None:
        super().__init__()
        self._title = title
        self._text = Content(visible(text)) if isinstance(text, str) else text

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet -page"):
            yield Static(Content.styled(self._title, "bold"), classes="sheet-title")
            with VerticalScroll(id="page-scroll"):
                yield Static(self._text, id="page-text")
            yield Static(Content.styled("Esc closes", "$quiet"), classes="sheet-foot")

    def on_mount(self) -> None:
        self.query_one("#page-scroll").focus()

    def action_scroll(self, where: str) -> None:
        scroll = self.query_one("#page-scroll", VerticalScroll)
        moves = {
            "down": scroll.scroll_down,
            "up": scroll.scroll_up,
            "home": scroll.scroll_home,
            "end": scroll.scroll_end,
            "page_down": scroll.scroll_page_down,
            "page_up": scroll.scroll_page_up,
        }
        moves[where](animate=False)

    def action_leave(self) -> None:
        self.dismiss(None)
