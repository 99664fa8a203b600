"""Signals: the first one ends the run in order, the second one at once."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from agent.core.errors import ExitCode
from agent.resources import runtime_folder
from agent.server.record import list_records

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_by_signals(cancel: asyncio.Event) -> Iterator[None]:
    """Sets `cancel` on the first signal and ends the process on the next one, while the block runs.

    A signal that whoever started the program has switched off (`nohup`, a job in the background of a
    script) stays switched off.
    """
    loop = asyncio.get_running_loop()
    interrupted = False

    # Not a handler of the event loop: that would be deaf while a write waits for a reader who does not read.
    def interrupt(_: int, __: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            _end_at_once()
        interrupted = True
        loop.call_soon_threadsafe(cancel.set)

    caught = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    former = {number: signal.signal(number, interrupt) for number in caught}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _end_at_once() -> None:
    """Leaves without another step; yet no command of the model goes on without its program."""
    try:
        _kill_commands()
    finally:
        os._exit(int(ExitCode.INTERRUPTED))


def _kill_commands() -> None:
    import psutil

    from tools._process.group import kill_commands_of

    servers = {record.pid for record in list_records(runtime_folder())}
    for child in psutil.Process().children():
        # A git that is killed leaves its lock behind; left alone it is done in a moment.
        if child.pid in servers or child.name() == "git":
            continue
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    kill_commands_of(os.getpid())
