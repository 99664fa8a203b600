"""The application: puts the parts of the main screen together and passes on what a person does.

The input field is painted first. The conversation, the session and everything that takes long to import
come after the first paint, while the person can already type.
"""

import asyncio
import importlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.css.query import NoMatches
from textual.driver import Driver
from textual.screen import Screen
from textual.widget import MountError, Widget
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from agent.core.outside_text import one_line
from agent.ui import terminal_keys
from agent.ui.conversation.keys import KEYS
from agent.ui.entry.draft import DraftFile
from agent.ui.entry.history import InputHistory
from agent.ui.entry.unsent import Unsent
from agent.ui.frames import MainScreen
from agent.ui.keys import described, first_keys
from agent.ui.options import Opening, UiOptions
from agent.ui.sure_timers import SureTimers
from agent.ui.themes import OURS, theme_for
from agent.ui.welcome import welcome
from agent.ui.widgets.hint_line import HintLine, hints_for
from agent.ui.widgets.menu import Menu
from agent.ui.widgets.prompt import Prompt, When
from agent.ui.widgets.status_bar import StatusBar
from agent.ui.without_colour import WithoutColour

if TYPE_CHECKING:
    from agent.core.handle import SessionFacts
    from agent.ui.conversation.view import ConversationView
    from agent.ui.desk import Desk
    from agent.ui.widgets.approval import ApprovalPanel

DRAFT_SECONDS = 0.4
QUIT_SECONDS = 2.0
MESSAGE_SECONDS = 4.0
LOW_ROWS = 20

MakeConversation = Callable[[], Widget]


class AgentApp(SureTimers, App[str]):
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
        if self.no_color:
            # Textual's own would still send shades of grey.
            self._filters = [WithoutColour()]
        self.options = options
        self.clock = clock
        self._write = write
        self.make_conversation = make_conversation
        for theme in OURS:
            self.register_theme(theme)
        wanted = theme_for(options.theme, os.environ)
        self.theme = wanted if wanted in self.available_themes else OURS[0].name
        self.set_keymap(dict(options.keys))
        folder = options.state_folder
        self.past = InputHistory(folder / "history.jsonl" if folder else None)
        self.menu = Menu()
        self.prompt = Prompt(self.past, self.menu, options.keys)
        self.prompt.workspace = options.workspace
        self._unsent = Unsent(
            DraftFile(folder, os.getpid()),
            typed=self.prompt.draft,
            waiting=lambda: self.desk.live.waiting if self.desk is not None else (),
        )
        self.hints = HintLine()
        self.status = StatusBar()
        self._quit_asked_at: float | None = None
        self._knows_focus = False
        self._said = 0
        self._keys = first_keys([*Prompt.BINDINGS, *self.BINDINGS, *KEYS], options.keys)
        self.desk: Desk | None = None
        self._early: list[tuple[str, When]] = []

    # -- what is on the screen ---------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Vertical(Static(welcome(self.options.workspace), id="welcome"), id="conversation-slot")
        with Vertical(id="bottom"):
            yield self.menu
            with Vertical(id="entry"):
                yield self.prompt
                yield self.hints
            yield self.status

    def get_default_screen(self) -> Screen[Any]:
        return MainScreen()

    def get_driver_class(self) -> type[Driver]:
        usual = super().get_driver_class()
        if usual.__name__ != "LinuxDriver":
            return usual
        from agent.ui.driver import LastingDriver

        return LastingDriver

    def get_theme_variable_defaults(self) -> dict[str, str]:
        # For themes that are not ours: readable on dark and on light.
        return {"quiet": "#858c98"}

    @property
    def main(self) -> Screen[Any]:
        return self.screen_stack[0]

    @property
    def facts(self) -> "SessionFacts | None":
        return self.desk.facts if self.desk is not None else None

    @property
    def is_looked_at(self) -> bool:
        """Whether the terminal tells that it has the focus."""
        return self._knows_focus and self.app_focus

    def on_mount(self) -> None:
        self.prompt.focus()
        self._take_signals()
        if theme_for(self.options.theme, os.environ) not in self.available_themes:
            self.say(f"there is no theme '{one_line(self.options.theme, 30)}' (ui.theme); /theme shows all")
        self._draft_timer = self.set_interval(DRAFT_SECONDS, self._save_draft, pause=True)
        self.watch(self.main, "focused", self.show_hints, init=True)
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
        draft = await asyncio.to_thread(self._unsent.take_abandoned)
        if draft is not None:
            self.prompt.show_draft(draft)
            self.say("The text that was not sent last time is back")
        module = await asyncio.to_thread(importlib.import_module, "agent.ui.desk")
        try:
            self.desk = desk = await module.make_desk(self, self.make_conversation)
        except (NoMatches, MountError):
            return  # whoever leaves in the first moment takes the screen away
        early, self._early = self._early, []
        waits = desk.send_first(self.options.prompt.strip())
        for text, when in early:
            self.submit(text, when)
        self._complete_now()
        self.run_worker(self._open_first(waits), group="open", exit_on_error=False)

    async def _open_first(self, command: str) -> None:
        await self.open_session(self.options.opening)
        if command:
            self.submit(command, "now")

    async def open_session(self, opening: Opening) -> None:
        """Fetches what is missing, if the person wants it, and opens a session."""
        desk = self.desk
        if desk is None or desk.preparation.panel is not None:
            return
        if not await desk.preparation.run(opening):
            return
        await desk.live.open(opening)
        desk.in_background(desk.preparation.tell_the_rest(opening))
        if self.options.loaded is not None:
            self.options.loaded()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A fault of ours is told as well, in one line: a screen that only waits would hide it."""
        if event.state != WorkerState.ERROR:
            return
        error = event.worker.error
        text = f"that did not work: {type(error).__name__}: {error}"
        if self.desk is not None:
            self.desk.host.tell(text, "error")
        else:
            self.say(text, seconds=60.0)

    # -- what is said beside the conversation ----------------------------------------------------------

    def say(self, text: str, seconds: float = MESSAGE_SECONDS) -> None:
        """Shows `text` instead of the status bar for a while."""
        self._said += 1
        number = self._said
        self.status.say(text)
        self.set_timer(seconds, lambda: self.status.say("") if number == self._said else None)

    def show_hints(self) -> None:
        """The keys that matter now."""
        desk = self.desk
        found = hints_for(
            lambda name: self._keys.get(name, ""),
            is_running=desk is not None and desk.live.is_running,
            is_asking=desk is not None and bool(desk.panel.display),
            has_conversation=desk is not None and desk.has_conversation,
            in_conversation=desk is not None and self.main.focused is desk.conversation,
            in_question=desk.panel.part_with_focus if desk is not None else "",
            is_busy=desk is not None and desk.live.is_busy,
        )
        self.hints.show(found, is_more=desk is not None and not desk.follows)

    def on_app_focus(self) -> None:
        self._knows_focus = True
        if self.desk is not None:
            self.desk.be_awake()

    def on_app_blur(self) -> None:
        self._knows_focus = True

    def write_to_terminal(self, sequence: str) -> None:
        if self._write is not None and sequence:
            self._write(sequence)
        elif self._driver is not None and sequence and not self.is_headless:
            self._driver.write(sequence)

    def copy_text(self, text: str) -> None:
        """Copies by every way there is, and says how."""
        if self.desk is None:
            return
        how = self.desk.host.copy(text)
        lost = "The terminal takes no text that long; /export writes the session to a file"
        self.say(f"Copied {len(text):,} characters, {how}" if how else lost)

    # -- what the person does ------------------------------------------------------------------------

    def submit(self, text: str, when: When) -> None:
        """Acts on a whole text of the input field, now or as soon as that is possible."""
        if self.desk is None:
            self._early.append((text, when))
        else:
            self.desk.submit(text, when)

    @on(Prompt.Sent)
    def _sent(self, message: Prompt.Sent) -> None:
        self._unsent.remove()
        self.submit(message.text, message.when)

    @on(Prompt.Completing)
    def _complete_now(self) -> None:
        if self.desk is not None:
            self.desk.complete()

    @on(Prompt.Wanted)
    def _wanted(self, message: Prompt.Wanted) -> None:
        if message.what == "quit":
            self._start_leaving()
        elif message.what == "stop":
            self.action_stop()
        elif self.desk is not None:
            self.desk.do(message.what)

    # Panel and conversation are imported after the first paint, so these are found by their names.

    def on_approval_panel_answered(self, message: "ApprovalPanel.Answered") -> None:
        if self.desk is not None:
            self.desk.answer(message.request_id, message.answer)

    def on_approval_panel_typed(self, message: "ApprovalPanel.Typed") -> None:
        self.prompt.focus()
        self.prompt.insert_at_cursor(message.text)

    def on_approval_panel_left(self, message: "ApprovalPanel.Left") -> None:
        self.prompt.focus()
        if message.what == "interrupt" and self.desk is not None:
            self.desk.interrupt()

    def on_conversation_view_left(self, message: "ConversationView.Left") -> None:
        self.prompt.focus()
        if message.typed:
            self.prompt.take_paste(message.typed)

    def on_conversation_view_copy_requested(self, message: "ConversationView.CopyRequested") -> None:
        self.copy_text(message.text)

    def on_conversation_view_follow_changed(self, message: "ConversationView.FollowChanged") -> None:
        if self.desk is not None:
            self.desk.follows = message.follows
            self.show_hints()

    @on(Prompt.Changed)
    def _typed(self) -> None:
        self.main.query_one("#entry").set_class(self.prompt.has_class("-shell"), "-shell")
        self._draft_timer.resume()
        if self.desk is not None:
            self.desk.be_awake()

    def keep_queued(self, texts: Sequence[str]) -> None:
        """Takes note of what waits to be sent: whatever ends the program, it is no more lost than a draft."""
        self._unsent.keep_queued(texts)
        self._draft_timer.resume()

    def _save_draft(self) -> None:
        self._unsent.save()
        self._draft_timer.pause()

    async def leave(self) -> None:
        """Saves what was typed, lets go of the session and ends."""
        self._unsent.close()
        facts = self.facts
        self.status.say("Closing the session …")
        if self.desk is not None:
            await self.desk.live.close()
        self._unsent.remove_if_empty()
        self.exit(facts.session_id if facts else "")

    # -- keys ----------------------------------------------------------------------------------------

    def action_next_mode(self) -> None:
        if self.desk is not None and len(self.screen_stack) == 1:
            self.desk.next_mode()

    def action_stop(self) -> None:
        """First clears the field, then interrupts, then asks for a second press, then quits."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy_text(selected)
            self.screen.clear_selection()
        elif self.prompt.text:
            self.prompt.empty()
        elif self._quit_asked_at is not None and self.clock() - self._quit_asked_at < QUIT_SECONDS:
            self._start_leaving()
        else:
            if self.desk is not None and self.desk.live.is_busy:
                self.desk.interrupt()
            self._quit_asked_at = self.clock()
            self.say("Ctrl+C again quits", QUIT_SECONDS)

    def action_turns(self) -> None:
        if self.desk is None:
            return
        from agent.ui.screens.turns import TurnsScreen

        folder = self.options.state_folder
        exports = folder / "exports" if folder else None
        turns = self.desk.bridge.meter.turns
        self.push_screen(TurnsScreen(turns, exports, lambda: time.strftime("%Y%m%d-%H%M%S")))

    def action_help(self) -> None:
        self.submit("/help", "now")

    def action_palette(self) -> None:
        if self.desk is not None:
            from agent.ui import actions

            self.desk.in_background(actions.choose_command(self, self.desk))

    def action_scroll_conversation(self, pages: int) -> None:
        if self.desk is not None:
            view = self.desk.conversation
            view.scroll_relative(y=pages * max(1, view.size.height - 2), animate=False)

    def key_table(self) -> Sequence[tuple[str, str, str]]:
        return described([*Prompt.BINDINGS, *self.BINDINGS, *KEYS], self.options.keys)
