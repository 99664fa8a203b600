"""The session behind the screen: opening it, following its events, and what waits until it is there."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from agent.core.errors import AgentError, UsageError
from agent.core.events import Event, Notice
from agent.core.handle import SessionHandle
from agent.ui.options import Opener, Opening, Service

LONGEST_HOLD_SECONDS = 0.008
"""How long events may be shown before keys and paints get their turn."""

CLOSE_SECONDS = 5.0
_ENDED_BY_INTERRUPT = frozenset({"shell", "compact", "bench", "btw"})


class LiveSession:
    """Holds one open session at a time.

    `show` takes each event, `replay` all those of a resumed session from before, `changed` is called when a
    session was opened or could not be.
    """

    def __init__(
        self,
        opener: Opener,
        services: Mapping[str, Service],
        *,
        show: Callable[[Event], None],
        replay: Callable[[Sequence[Event]], None],
        changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._opener = opener
        self._services = services
        self._show = show
        self._replay = replay
        self._changed = changed
        self._clock = clock
        self.handle: SessionHandle | None = None
        self.waiting: list[str] = []
        """What was sent while there was no session; the first is on the screen already."""
        self._settled = asyncio.Event()
        self._settled.set()
        self.has_failed = False
        self._commands = 0
        self._follower: asyncio.Task[None] | None = None
        self._held: list[Event] | None = None

    @property
    def is_opening(self) -> bool:
        return not self._settled.is_set()

    async def settled(self) -> None:
        """Returns when no session is just being opened."""
        await self._settled.wait()

    @property
    def is_running(self) -> bool:
        return self.handle is not None and self.handle.facts.is_running

    @property
    def is_busy(self) -> bool:
        """Whether something runs that `interrupt` ends: a turn, or a command of the person's."""
        return self.is_running or self._commands > 0

    async def open(self, opening: Opening) -> None:
        """Opens a session and hands over what was sent meanwhile. A failure is shown, never raised.

        Where an earlier session cannot be gone on with, a fresh one takes its place.
        """
        self._settled.clear()
        self.has_failed = True
        self._changed()
        try:
            problem = await self._try(opening)
            if problem:
                self._show(Notice(text=problem, level="error"))
            if problem and opening.resume:
                opening = replace(opening, resume="", fork=False)
                also = await self._try(opening)
                if also != problem:
                    text, level = (also, "error") if also else ("a new session is open instead", "info")
                    self._show(Notice(text=text, level=level))
        finally:
            self.has_failed = self.handle is None
            self._settled.set()
            self._changed()
        if self.handle is None:
            return
        self._follower = asyncio.create_task(self._follow(self.handle))
        if opening.resume:
            await self.show_past()
        waiting, self.waiting = self.waiting, []
        for text in waiting:
            self.handle.prompt(text)
        self._changed()

    async def _try(self, opening: Opening) -> str:
        """Opens a session; what was wrong, empty where nothing was."""
        try:
            self.handle = await self._opener(opening)
        except AgentError as error:
            return f"{error.message}\n{error.hint}".strip()
        return ""

    def send(self, text: str, when: Literal["now", "later"]) -> None:
        """Begins a turn, steers the running one, or waits until there is a session."""
        if self.handle is None:
            self.waiting.append(text)
        elif not self.is_running:
            self.handle.prompt(text)
        elif when == "now":
            self.handle.steer(text)
        else:
            self.handle.follow_up(text)

    def take_back(self) -> list[str]:
        """Empties the queue of the session and gives what was in it."""
        return self.handle.take_back_queued() if self.handle is not None else []

    def interrupt(self) -> list[str]:
        """Ends the running turn; gives back what was queued."""
        if self.handle is None:
            waiting, self.waiting = self.waiting, []
            return waiting
        queued = self.take_back()
        self.handle.cancel()
        return queued

    async def service(self, name: str, /, **arguments: Any) -> Any:
        """Raises AgentError: the service is not there, or failed."""
        if name in self._services:
            return await self._services[name](arguments)
        if self.handle is None:
            raise UsageError("the session is not open yet", "wait for the server, or see what it said above")
        if name not in _ENDED_BY_INTERRUPT:
            return await self.handle.command(name, arguments)
        self._commands += 1
        try:
            return await self.handle.command(name, arguments)
        finally:
            self._commands -= 1

    async def close(self) -> None:
        """Lets go of the session; gives up after a few seconds, because a person waits."""
        handle, self.handle = self.handle, None
        if handle is not None:
            with contextlib.suppress(TimeoutError, AgentError):
                await asyncio.wait_for(handle.close(), CLOSE_SECONDS)
        if self._follower is not None:
            self._follower.cancel()
            self._follower = None

    async def _follow(self, handle: SessionHandle) -> None:
        began = self._clock()
        async for event in handle.events():
            if self._held is not None:
                self._held.append(event)
                continue
            self._show(event)
            if self._clock() - began > LONGEST_HOLD_SECONDS:
                await asyncio.sleep(0)
                began = self._clock()

    async def show_past(self, clear: Callable[[], None] = lambda: None) -> None:
        """Replays what the session recorded so far, after `clear`.

        What comes in meanwhile is shown after it, and only if it is not in the record already.
        """
        if self.handle is None:
            return
        self._held = []
        try:
            events = list(await self.handle.command("history", {}) or ())
            await asyncio.sleep(0)  # what is on its way to the screen arrives
        except AgentError:
            events = None
        finally:
            held, self._held = self._held, None
        if events is not None:
            clear()
        self._replay(events or ())
        for event in held:
            if event not in (events or ()):
                self._show(event)
