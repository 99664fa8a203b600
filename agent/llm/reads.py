"""Reads a fast stream in larger bites.

A server sends each token as an event of its own. At hundreds of tokens a second most of what they cost here
is not their text but the way to the socket and back, once for each. A short rest whenever everything that had
come is read lets several gather for the next read.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

REST_SECONDS = 0.06
"""Shorter than a frame of the terminal interface, so nobody sees it."""
_FAST_EVENTS_PER_SECOND = 100
_MOST_AT_ONCE = 16  # events; then a key gets its turn
_SETTLED_SECONDS = 0.3  # a short reply never rests: the next request would have to wait for it


class FullerReads:
    """`rest` is called after each event."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._loop = asyncio.get_running_loop()
        self._began = clock()
        self._events = 0
        self._has_waited = False
        self._at_once = 0
        self._watch()

    async def rest(self) -> None:
        """Waits a moment if the stream is fast and its socket was empty before this event."""
        self._events += 1
        self._at_once += 1
        if not self._has_waited and self._at_once >= _MOST_AT_ONCE:
            await self._sleep(0)
            self._watch()
        elif self._has_waited:
            elapsed = self._clock() - self._began
            if elapsed > _SETTLED_SECONDS and self._events > elapsed * _FAST_EVENTS_PER_SECOND:
                await self._sleep(REST_SECONDS)
            self._watch()

    def _watch(self) -> None:
        """The event loop comes to its next round only when somebody waits: here, for the socket."""
        self._has_waited = False
        self._at_once = 0
        self._loop.call_soon(self._note)

    def _note(self) -> None:
        self._has_waited = True
