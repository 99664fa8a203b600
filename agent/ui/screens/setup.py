"""What is missing before the first turn, what it costs to get it, and getting it."""

import asyncio
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agent.core.errors import AgentError
from agent.ui.conversation.text import visible
from agent.ui.options import Missing, Opening, Setup
from agent.ui.text import one_line, size
from agent.ui.widgets.prompt import Prompt

BAR_CELLS = 32


class SetupScreen(ModalScreen[bool]):
    """Gives whether something was fetched. Going back stops a download; what is there is kept.

    Whoever was typing when it came goes on: keys reach the input field, and only an Enter before which
    nothing was typed starts a download.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "fetch", "Get it"),
        Binding("escape,ctrl+c", "leave", "Not now"),
    ]

    def __init__(self, setup: Setup, opening: Opening, missing: list[Missing]) -> None:
        super().__init__()
        self._setup = setup
        self._opening = opening
        self._missing = missing
        self._is_fetching = False
        self._has_typed = False

    @property
    def can_fetch(self) -> bool:
        return any(item.can_fetch for item in self._missing)

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(Content.styled("Before the first turn", "bold"), classes="sheet-title")
            yield Static(Content("\n").join(_described(item) for item in self._missing), id="setup-list")
            yield Static("", id="setup-progress")
            yield Static("", id="setup-typed")
            yield Static(Content.styled(self._keys(), "$quiet"), classes="sheet-foot")

    def on_mount(self) -> None:
        self._show_typed()

    @property
    def _prompt(self) -> Prompt:
        return self.app.screen_stack[0].query_one(Prompt)

    def on_key(self, event: events.Key) -> None:
        is_send = event.key == "enter"
        has_text = self._has_typed or bool(self._prompt.text.strip())
        if event.key in ("escape", "ctrl+c") or (is_send and not has_text):
            return
        event.stop()
        # Keys of one burst are typed after this, so the field cannot be asked yet whether one was.
        self._has_typed = not is_send
        self._prompt.post_message(events.Key(event.key, event.character))
        self._prompt.call_later(self._show_typed)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self._has_typed = True
        self._prompt.take_paste(event.text)
        self._show_typed()

    def _show_typed(self) -> None:
        if not self.is_attached:
            return
        text = self._prompt.text
        typed = self.query_one("#setup-typed", Static)
        typed.display = bool(text.strip())
        typed.update(Content.assemble(("typed  ", "$quiet"), one_line(text), ("  Enter sends it", "$quiet")))

    def _keys(self) -> str:
        if not self.can_fetch:
            return "Esc closes"
        known = sum(item.download_bytes for item in self._missing if item.can_fetch)
        amount = f" ({size(known)})" if known else ""
        return f"Enter gets it now{amount} · Esc not now"

    def action_fetch(self) -> None:
        if not self.can_fetch:
            self.dismiss(False)
        elif not self._is_fetching:
            self._is_fetching = True
            self.run_worker(self._fetch(), exclusive=True, exit_on_error=False)

    async def _fetch(self) -> None:
        loop = asyncio.get_running_loop()
        self._say("Asking where it can be had …")

        def progress(name: str, done: int, whole: int) -> None:
            loop.call_soon_threadsafe(self._show_progress, name, done, whole)

        try:
            await self._setup.fetch(self._opening, progress)
        except AgentError as error:
            self._is_fetching = False
            self._say(f"{error.message}\n{error.hint}\nEnter tries again; what was fetched is kept.")
            return
        self.dismiss(True)

    def _show_progress(self, name: str, done: int, whole: int) -> None:
        # What was reported before a failure may arrive after it.
        if not self._is_fetching or not self.is_attached:
            return
        if not whole:
            self._say(f"{name}  {size(done)}")
            return
        filled = min(BAR_CELLS, BAR_CELLS * done // whole)
        bar = "━" * filled + "─" * (BAR_CELLS - filled)
        self._say(f"{name}\n{bar}  {size(done)} of {size(whole)}, {100 * done // whole} %")

    def _say(self, text: str) -> None:
        self.query_one("#setup-progress", Static).update(Content(visible(text)))

    def action_leave(self) -> None:
        self.dismiss(False)


def _described(item: Missing) -> Content:
    amount = f"  {size(item.download_bytes)}" if item.download_bytes else ""
    mark = ("↓ ", "bold $text-accent") if item.can_fetch else ("· ", "$quiet")
    return Content.assemble(
        mark, (visible(item.what), "bold"), amount, ("\n  " + visible(item.remedy), "$quiet")
    )
