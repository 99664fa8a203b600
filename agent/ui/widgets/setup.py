"""The panel above the input field that says what keeps the model from answering, and gets it on Enter."""

import asyncio
from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static
from textual.worker import Worker

from agent.core.errors import AgentError
from agent.ui.conversation.text import visible
from agent.ui.options import Headway, Missing, Opening, Setup
from agent.ui.text import size
from agent.ui.widgets.room import leave_room

BAR_CELLS = 32
GRACE_SECONDS = 0.6
"""A person who presses Enter when the panel appears meant something else."""


class SetupPanel(Vertical):
    """Never has the focus: the input field keeps it, and tells of Enter while it is empty, and of Esc.

    `instead` is the profile that is to follow on one that answers meanwhile; empty where none does.
    """

    can_focus = False

    def __init__(
        self,
        setup: Setup,
        opening: Opening,
        missing: list[Missing],
        clock: Callable[[], float],
        instead: str = "",
    ) -> None:
        super().__init__(id="setup")
        self._setup = setup
        self._opening = opening
        self._missing = missing
        self._clock = clock
        self._instead = instead
        self._shown_at = clock()
        self._work: Worker[None] | None = None
        self._put_away = asyncio.Event()
        self._list = Vertical(*_all_lines(missing), id="setup-list")
        self._progress = Static(id="setup-progress")
        self._keys = Static(id="setup-keys")
        self._scroll = VerticalScroll(self._list, id="setup-scroll", can_focus=False)

    def compose(self) -> ComposeResult:
        who = visible(self._instead) or "the model"
        yield Static(Content.styled(f"Before {who} can answer", "bold"), id="setup-heading")
        yield self._scroll
        yield self._progress
        yield self._keys

    def on_mount(self) -> None:
        self._say("")
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _: leave_room(self, self._scroll))

    @property
    def can_fetch(self) -> bool:
        return any(item.can_fetch for item in self._missing)

    @property
    def is_complete(self) -> bool:
        """Whether nothing was missing any more when it was looked last."""
        return not self._missing

    @property
    def is_working(self) -> bool:
        return self._work is not None and not self._work.is_finished

    async def until_put_away(self) -> None:
        """Returns when nothing is missing any more, or the person does not want to see it."""
        await self._put_away.wait()

    def put_away(self) -> None:
        """What is being fetched stops; what is there is kept."""
        if self._work is not None:
            self._work.cancel()
        self._put_away.set()

    def accept(self) -> None:
        """Enter: gets what can be fetched, else looks whether the person has done it."""
        is_early = self._clock() - self._shown_at < GRACE_SECONDS
        if is_early or self.is_working or self._put_away.is_set():
            return
        # Of the application, which tells of a fault of ours.
        self._work = self.app.run_worker(self._fetch(), group="setup", exit_on_error=False)
        self._show_keys()

    def back(self) -> None:
        """Esc: stops a download, else puts the panel away."""
        if self.is_working and self._work is not None:
            self._say("Stopping …")
            self._work.cancel()
        else:
            self.put_away()

    async def _fetch(self) -> None:
        trouble = ""
        try:
            if self.can_fetch:
                self._say("Asking where it can be had …")
                await self._setup.fetch(self._opening, self._reporter())
            self._missing = await self._setup.missing(self._opening)
        except AgentError as error:
            trouble = f"{error.message}\n{error.hint}".strip()
            self._missing = await self._setup.missing(self._opening) or self._missing
        except asyncio.CancelledError:
            self._work = None
            self._say("Stopped; what is there is kept.")
            raise
        self._work = None
        if not self._missing:
            self._put_away.set()
            return
        self._show_missing()
        self._say(trouble or "This is still missing.")

    def _reporter(self) -> Callable[[Headway], None]:
        loop = asyncio.get_running_loop()
        work = self._work

        def report(headway: Headway) -> None:
            loop.call_soon_threadsafe(self._show_headway, headway, work)

        return report

    def _show_headway(self, headway: Headway, work: "Worker[None] | None") -> None:
        # What was reported before a failure or an Esc may arrive after it.
        if work is None or work is not self._work or work.is_cancelled:
            return
        name, done, whole = headway.name, headway.done, headway.whole
        if not whole:
            self._say(f"{name}  {size(done)}" if headway.is_bytes else name)
            return
        filled = min(BAR_CELLS, BAR_CELLS * done // whole)
        bar = "━" * filled + "─" * (BAR_CELLS - filled)
        amount = f"{size(done)} of {size(whole)}, " if headway.is_bytes else ""
        self._say(f"{name}\n{bar}  {amount}{100 * done // whole} %")

    def _show_missing(self) -> None:
        with self.app.batch_update():
            self._list.remove_children()
            self._list.mount(*_all_lines(self._missing))

    def _say(self, text: str) -> None:
        self._progress.display = bool(text)
        self._progress.update(Content(visible(text)))
        self._show_keys()

    def _show_keys(self) -> None:
        if self.is_working:
            meanwhile = "the present model answers meanwhile"
            if not self._instead:
                meanwhile = "you can type meanwhile, what you send waits"
            keys = f"Esc stops; it goes on later · {meanwhile}"
        elif self.can_fetch:
            known = sum(item.download_bytes for item in self._missing if item.can_fetch)
            amount = f" ({size(known)})" if known else ""
            keys = f"Enter, with nothing typed, gets it{amount} · Esc not now"
        else:
            keys = "Enter, with nothing typed, looks again · Esc closes"
        self._keys.update(Content.styled(keys, "$quiet"))


def _all_lines(missing: list[Missing]) -> list[Static]:
    return [line for item in missing for line in _described(item)]


def _described(item: Missing) -> list[Static]:
    """A heading, and below it, further in also where it wraps, what can be done."""
    amount = f"  {size(item.download_bytes)}" if item.download_bytes else ""
    mark = ("↓ ", "bold $text-accent") if item.can_fetch else ("· ", "$quiet")
    lines = [Static(Content.assemble(mark, (visible(item.what), "bold"), amount))]
    for text, style in ((item.remedy, "$quiet"), (item.command, "$text-primary")):
        if text:
            lines.append(Static(Content.styled(visible(text), style), classes="setup-more"))
    return lines
