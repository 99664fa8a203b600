"""Ending what is under way: a person interrupts, or the time is up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

from agent.core.errors import AgentError, ExitCode

Result = TypeVar("Result")
Stream = TypeVar("Stream", bound=AsyncIterator)


class InterruptedRunError(AgentError):
    """A person pressed Ctrl-C, or the process was asked to end."""

    exit_code = ExitCode.INTERRUPTED

    def __init__(self) -> None:
        super().__init__("interrupted")


async def unless_cancelled(work: Awaitable[Result], cancel: asyncio.Event) -> Result:
    """The result of `work`, which is cancelled and awaited when `cancel` is set first.

    A coroutine is not even begun when `cancel` is already set. Raises InterruptedRunError in both cases,
    and whatever `work` raises otherwise.
    """
    if cancel.is_set() and asyncio.iscoroutine(work):
        work.close()
        raise InterruptedRunError
    task = asyncio.ensure_future(work)
    stop = asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise InterruptedRunError
    finally:
        stop.cancel()
        task.cancel()
        await asyncio.gather(task, stop, return_exceptions=True)


@contextlib.asynccontextmanager
async def halting(cancel: asyncio.Event, seconds: float | None) -> AsyncIterator[asyncio.Event]:
    """An event that is set together with `cancel`, and by itself after `seconds` (`None`: never)."""
    halt = asyncio.Event()
    if cancel.is_set():
        halt.set()
    timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, halt.set)
    watch = asyncio.ensure_future(cancel.wait())
    watch.add_done_callback(lambda watch: None if watch.cancelled() else halt.set())
    try:
        yield halt
    finally:
        if timer is not None:
            timer.cancel()
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)


@contextlib.asynccontextmanager
async def closing(stream: Stream) -> AsyncIterator[Stream]:
    """Closes a stream at once when nobody reads on, instead of when it is collected."""
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
