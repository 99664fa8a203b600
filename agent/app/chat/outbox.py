"""Events on their way to one front, which may be slower than the model."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import replace

from agent.core.events import Event, Prefill, ReasoningDelta, TextDelta, ToolCallDelta, ToolOutput

MOST_WAITING = 2_000
_MOST_OUTPUT_CHARACTERS = 256_000


class Outbox:
    """A queue in which neighbouring deltas become one; nothing else is ever merged or left out.

    Events are kept from the beginning, so that a front which subscribes late misses none. With a front
    that reads, `room` makes whoever produces events wait while `most_waiting` of them do.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._most = most_waiting
        self._waiting: deque[Event] = deque()
        self._pieces: list[str] = []
        self._closed = False
        self._reading = False
        self._news = asyncio.Event()
        self._space = asyncio.Event()
        self._space.set()

    def put(self, event: Event) -> None:
        """Adds an event; one that continues the last is merged with it. Ignored after `close`."""
        if self._closed:
            return
        last = self._waiting[-1] if self._waiting else None
        if isinstance(event, Prefill) and isinstance(last, Prefill):
            self._waiting[-1] = event
        elif (text := _continuation(last, event)) is not None:
            self._pieces.append(text)
        else:
            self._join_pieces()
            self._waiting.append(event)
        if len(self._waiting) >= self._most:
            self._space.clear()
        self._news.set()

    async def room(self) -> None:
        """Waits until the front has caught up. Returns at once where nobody reads."""
        if self._reading and not self._closed:
            await self._space.wait()

    def close(self) -> None:
        """The front gets what still waits, and then the end."""
        self._closed = True
        self._news.set()
        self._space.set()

    async def events(self) -> AsyncIterator[Event]:
        self._reading = True
        try:
            while True:
                while self._waiting:
                    yield self._take()
                if self._closed:
                    return
                self._news.clear()
                await self._news.wait()
        finally:
            self._reading = False
            self._space.set()

    def _take(self) -> Event:
        if len(self._waiting) == 1:
            self._join_pieces()
        event = self._waiting.popleft()
        if len(self._waiting) < self._most:
            self._space.set()
        return event

    def _join_pieces(self) -> None:
        """Puts the text that came after the last waiting event into it, all at once."""
        if not self._pieces:
            return
        last = self._waiting[-1]
        added = "".join(self._pieces)
        self._pieces.clear()
        if isinstance(last, TextDelta | ReasoningDelta | ToolCallDelta):
            self._waiting[-1] = replace(last, text=last.text + added)
        elif isinstance(last, ToolOutput):
            # A live view shows the end; the whole output is in `tool_finished`.
            self._waiting[-1] = replace(last, text=(last.text + added)[-_MOST_OUTPUT_CHARACTERS:])


def _continuation(last: Event | None, event: Event) -> str | None:
    """The text that `event` adds to `last`, None where it is something of its own."""
    if isinstance(event, ToolOutput):
        return event.text if isinstance(last, ToolOutput) and last.call_id == event.call_id else None
    if isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta) and type(event) is type(last):
        return event.text
    return None
