"""Blocking work beside the event loop that the end of the program never waits for."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

Result = TypeVar("Result")


async def in_background(work: Callable[[], Result]) -> Result:
    """The result of `work`, or what it raises.

    Runs in a thread of its own that is left alone when nobody waits for it any more: the threads of the
    event loop's pool would hold up the exit until they are done, and a server that does not answer, or a
    model file that is read through, can take long.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast("Result", result))

    def run() -> None:
        try:
            outcome = (work(), None)
        except Exception as error:
            outcome = (None, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, daemon=True).start()
    return await future


def start_in_background(work: Callable[[], object]) -> None:
    """Starts work of which nobody needs the result, and which may be cut off by the end of the program.

    That a disk refuses it is nobody's business either; any other error is a fault of ours and told as one.
    """

    def run() -> None:
        with suppress(OSError):
            work()

    threading.Thread(target=run, daemon=True).start()
