"""The application: puts the parts of the main screen together and passes on what a person does.

The input field is painted first. The conversation, the session and everything that takes long to import
come after the first paint, while the person can already type.
"""

import asyncio
import importlib
import os
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from agent.ui import terminal_keys
from agent.ui.entry.completion import completable
from agent.ui.entry.draft import DraftFile
from agent.ui.entry.history import InputHistory
from agent.ui.options import Opening, UiOptions
from agent.ui.themes import OURS, theme_for
from agent.ui.welcome import welcome
from agent.ui.widgets.menu import Menu
from agent.ui.widgets.prompt import Prompt, When
from agent.ui.widgets.status_bar import StatusBar

if TYPE_CHECKING:
    from agent.core.events import ApprovalRequest, Event, TurnFinished
    from agent.core.handle import SessionFacts, SessionMode
    from agent.ui.bridge import Bridge
    from agent.ui.completer import Completer
    from agent.ui.live import LiveSession
    from agent.ui.widgets.approval import ApprovalPanel

FRAME_SECONDS = 0.1
IDLE_SECONDS = 2.0
DRAFT_SECONDS = 0.4
QUIT_SECONDS = 2.0
LOW_ROWS = 20

MakeConversation = Callable[[], Widget]


class AgentApp(App[str]):
    """Its result is the id of the session that was open at the end, empty when there was none.

    `make_conversation` builds the view of the conversation; the default loads the real one. `write` takes
    what goes to the terminal beside the screen (bell, clipboard).
    """

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    TITLE = "agent"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "stop", "Clear, interrupt, quit", id="stop"),
        Binding("shift+tab", "next_mode", "Next permission mode", id="next-mode", priority=True),
        Binding("ctrl+p", "palette", "All commands", id="palette"),
        Binding("f1", "help", "Help", id="help"),
        Binding("f2,ctrl+t", "turns", "Figures of every turn", id="turns"),
        Binding("pageup", "scroll_conversation(-1)", "Scroll up", id="scroll-up"),
        Binding("pagedown", "scroll_conversation(1)", "Scroll down", id="scroll-down"),
    ]

    def __init__(
        self,
        options: UiOptions,
        make_conversation: MakeConversation | None = None,
        clock: Callable[[], float] = time.monotonic,
        write: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        terminal_keys.teach()
        self.options = options
        self.clock = clock
        self._write = write
        self._make_conversation = make_conversation
        for theme in OURS:
            self.register_theme(theme)
        wanted = theme_for(options.theme, os.environ)
        self.theme = wanted if wanted in self.available_themes else OURS[0].name
        self.set_keymap(dict(options.keys))
        folder = options.state_folder
        self.past = InputHistory(folder / "history.jsonl" if folder else None)
        self._drafts = DraftFile(folder, os.getpid())
        self.menu = Menu()
        self.prompt = Prompt(self.past, self.menu, options.keys)
        self.status = StatusBar()
        self._quit_asked_at: float | None = None
        self._knows_focus = False
        self.bridge: Bridge | None = None
        self.live: LiveSession
        self._completer: Completer
        self._early: list[tuple[str, When]] = []

    # -- what is on the screen ---------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Vertical(Static(welcome(self.options.workspace), id="welcome"), id="conversation-slot")
        with Vertical(id="bottom"):
            yield self.menu
            yield self.prompt
            yield self.status

    def get_theme_variable_defaults(self) -> dict[str, str]:
        # For themes that are not ours: readable on dark and on light.
        return {"quiet": "#858c98"}

    @property
    def main(self) -> Screen[Any]:
        return self.screen_stack[0]

    @property
    def facts(self) -> "SessionFacts | None":
        live = getattr(self, "live", None)
        return live.handle.facts if live is not None and live.handle is not None else None

    def on_mount(self) -> None:
        self.prompt.focus()
        self._take_signals()
        self._frames = self.set_interval(FRAME_SECONDS, self.refresh_status, pause=True)
        self._draft_timer = self.set_interval(DRAFT_SECONDS, self._save_draft, pause=True)
        self.call_after_refresh(self._begin)

    def on_resize(self, event: events.Resize) -> None:
        self.main.set_class(event.size.height < LOW_ROWS, "-low")

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            try:
                loop.add_signal_handler(number, self._start_leaving)
            except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
                return

    def _start_leaving(self) -> None:
        self.run_worker(self.leave(), exit_on_error=False)

    # -- after the first paint -----------------------------------------------------------------------

    def _begin(self) -> None:
        self.run_worker(self._load(), group="begin")

    async def _load(self) -> None:
        await asyncio.to_thread(self.past.load)
        draft = await asyncio.to_thread(self._drafts.take_abandoned)
        if draft is not None:
            self.prompt.show_draft(draft)
            self.status.say("The text that was not sent last time is back")
            self.set_timer(4, lambda: self.status.say(""))
        assembly = await asyncio.to_thread(importlib.import_module, "agent.ui.assembly")
        await assembly.assemble(self, self._make_conversation)
        self.set_interval(IDLE_SECONDS, self.refresh_status)
        self.run_worker(self._open(self.options.opening), group="open", exit_on_error=False)

    async def _open(self, opening: Opening) -> None:
        setup = self.options.setup
        if setup is not None:
            from agent.ui.screens.setup import SetupScreen

            missing = await setup.missing(opening.profile)
            if any(item.can_fetch for item in missing):
                await self.push_screen_wait(SetupScreen(setup, opening.profile, missing))
        await self.live.open(opening)
        if self.options.loaded is not None:
            self.options.loaded()

    def adopt(self, bridge: "Bridge", live: "LiveSession", completer: "Completer") -> None:
        """Takes over what was loaded after the first paint, and sends what was entered before."""
        self.bridge, self.live, self._completer = bridge, live, completer
        early, self._early = self._early, []
        for text, when in early:
            self.submit(text, when)
        self._complete_now()

    # -- what the session tells ----------------------------------------------------------------------

    def show(self, event: "Event") -> None:
        if self.bridge is not None:
            self.bridge.show(event)
            self._frames.resume()

    def show_typed(self, text: str) -> None:
        """Shows what the person typed that is no message to the model."""
        if self.bridge is not None:
            self.bridge.show_typed(text)

    def refresh_status(self) -> None:
        if self.bridge is None:
            return
        from agent.ui.status import segments

        figures = self.bridge.meter.figures()
        self.status.show(segments(self.facts, figures, self.bridge.server_detail))
        if not figures.is_running:
            self._frames.pause()

    def session_changed(self) -> None:
        """A session was opened, closed or could not be opened."""
        self._show_waiting()
        if self.bridge is not None:
            self._frames.resume()
            self.refresh_status()

    def on_request(self, request: "ApprovalRequest") -> None:
        if self.prompt.has_focus and not self.prompt.text:
            self.panel.focus()
        self._call_attention(f"agent asks: {request.tool}")

    def on_turn_finished(self, event: "TurnFinished") -> None:
        elapsed = self.bridge.meter.figures().elapsed if self.bridge else None
        if elapsed is not None and elapsed >= self.options.long_turn_seconds:
            self._call_attention(f"agent: {event.detail or event.reason}")
        self.refresh_status()

    @property
    def panel(self) -> "ApprovalPanel":
        from agent.ui.widgets.approval import ApprovalPanel

        return self.main.query_one(ApprovalPanel)

    def _call_attention(self, text: str) -> None:
        from agent.ui.attention import signal as signal_for

        if not (self._knows_focus and self.app_focus):
            self.write_to_terminal(signal_for(self.options.notify, text, os.environ))

    def on_app_focus(self) -> None:
        self._knows_focus = True

    def on_app_blur(self) -> None:
        self._knows_focus = True

    def write_to_terminal(self, sequence: str) -> None:
        if self._write is not None and sequence:
            self._write(sequence)
        elif self._driver is not None and sequence and not self.is_headless:
            self._driver.write(sequence)

    # -- what the person does ------------------------------------------------------------------------

    @on(Prompt.Sent)
    def _sent(self, message: Prompt.Sent) -> None:
        self._drafts.remove()
        if self.bridge is None:
            self._early.append((message.text, message.when))
        else:
            self.submit(message.text, message.when)

    def submit(self, text: str, when: When) -> None:
        """Acts on a whole text of the input field: a command, a shell line, or a message."""
        from agent.ui import actions
        from agent.ui.commands.catalogue import looks_like_command

        if looks_like_command(text.strip()):
            self.in_background(actions.run_command(self, text))
        elif text.startswith("!") and text.lstrip("! \n"):
            self.in_background(actions.run_shell(self, text))
        else:
            self.send(text, when)

    def send(self, text: str, when: When) -> None:
        if self.bridge is None:
            return
        live = self.live
        if not live.is_running and not live.waiting:
            self.bridge.echo(text)
        live.send(text, when)
        if live.handle is None and not live.is_opening and live.has_failed:
            self.in_background(self._open(self.options.opening))
        self._show_waiting()
        self._frames.resume()

    @property
    def host(self) -> Any:
        from agent.ui.host import AppHost

        return AppHost(self)

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs `work` beside the screen; what goes wrong becomes a line in the conversation."""
        self.run_worker(self._guarded(work), exit_on_error=False)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        from agent.core.errors import AgentError

        try:
            await work
        except AgentError as error:
            self.host.tell(f"{error.message}\n{error.hint}".strip(), "error")
        except OSError as error:
            self.host.tell(f"that did not work: {error}", "error")

    @on(Prompt.Completing)
    def _completing(self) -> None:
        self._complete_now()

    def _complete_now(self) -> None:
        if self.bridge is not None:
            target = completable(self.prompt.before_cursor)
            self.run_worker(self._completer.complete(target), group="complete", exclusive=True)

    @on(Prompt.Wanted)
    def _wanted(self, message: Prompt.Wanted) -> None:
        if message.what == "interrupt":
            self.interrupt()
        elif message.what == "quit":
            self._start_leaving()
        elif message.what == "stop":
            self.action_stop()
        elif message.what == "question":
            if self.bridge is not None and self.panel.display:
                self.panel.focus()
        else:
            from agent.ui import actions

            work = actions.search_history if message.what == "history" else actions.edit_outside
            self.in_background(work(self))

    # The panel is imported after the first paint, so these are found by their names.

    def on_approval_panel_answered(self, message: "ApprovalPanel.Answered") -> None:
        if self.bridge is not None and self.live.handle is not None:
            self.live.handle.answer(message.request_id, message.answer)

    def on_approval_panel_typed(self, message: "ApprovalPanel.Typed") -> None:
        self.prompt.focus()
        self.prompt.insert_at_cursor(message.text)

    def on_approval_panel_left(self, message: "ApprovalPanel.Left") -> None:
        self.prompt.focus()
        if message.what == "interrupt":
            self.interrupt()

    @on(Prompt.Changed)
    def _typed(self) -> None:
        self._draft_timer.resume()

    def _save_draft(self) -> None:
        self._drafts.save(self.prompt.draft())
        self._draft_timer.pause()

    def interrupt(self) -> None:
        """Ends the turn, and puts what was queued back where it was typed."""
        if self.bridge is None:
            return
        queued = self.live.interrupt()
        if queued:
            self.prompt.put_before("\n\n".join(queued))
        self._show_waiting()

    def _show_waiting(self) -> None:
        if self.bridge is not None and self.live.handle is None:
            self.bridge.show_waiting(self.live.waiting[1:])

    async def reopen(self, opening: Opening) -> None:
        """Closes this session and opens another on a clean screen."""
        if self.bridge is None:
            return
        await self.live.close()
        self.bridge.clear()
        await self.live.open(opening)

    def set_mode(self, mode: "SessionMode") -> None:
        if self.bridge is not None and self.live.handle is not None:
            self.live.handle.set_mode(mode)
            self.refresh_status()

    def action_next_mode(self) -> None:
        from agent.core.handle import MODES

        facts = self.facts
        if facts is not None and len(self.screen_stack) == 1:
            self.set_mode(MODES[(MODES.index(facts.mode) + 1) % len(MODES)])

    def action_stop(self) -> None:
        """First clears the field, then interrupts, then asks for a second press, then quits."""
        selected = self.screen.get_selected_text()
        if selected:
            self.host.copy(selected)
            self.screen.clear_selection()
        elif self.prompt.text:
            self.prompt.empty()
        elif self._quit_asked_at is not None and self.clock() - self._quit_asked_at < QUIT_SECONDS:
            self._start_leaving()
        else:
            is_running = self.bridge is not None and self.live.is_running
            if is_running:
                self.interrupt()
            self._quit_asked_at = self.clock()
            self.status.say("Ctrl+C again quits")
            self.set_timer(QUIT_SECONDS, lambda: self.status.say(""))

    async def leave(self) -> None:
        """Saves what was typed, lets go of the session and ends."""
        self._drafts.save(self.prompt.draft())
        facts = self.facts
        self.status.say("Closing the session …")
        if self.bridge is not None:
            await self.live.close()
        if not self.prompt.text:
            self._drafts.remove()
        self.exit(facts.session_id if facts else "")

    def action_turns(self) -> None:
        if self.bridge is None:
            return
        from agent.ui.screens.turns import TurnsScreen

        folder = self.options.state_folder
        exports = folder / "exports" if folder else None
        self.push_screen(
            TurnsScreen(self.bridge.meter.turns, exports, lambda: time.strftime("%Y%m%d-%H%M%S"))
        )

    def action_help(self) -> None:
        self.submit("/help", "now")

    def action_palette(self) -> None:
        from agent.ui import actions

        self.in_background(actions.choose_command(self))

    def action_scroll_conversation(self, pages: int) -> None:
        slot = self.main.query_one("#conversation-slot")
        for widget in slot.walk_children(Widget):
            if widget.allow_vertical_scroll or widget.max_scroll_y > 0:
                widget.scroll_relative(y=pages * max(1, widget.size.height - 2), animate=False)
                return

    def key_table(self) -> Sequence[tuple[str, str, str]]:
        from agent.ui.keys import described

        return described([*Prompt.BINDINGS, *self.BINDINGS], self.options.keys)
