"""Runs a program that works for minutes: its output goes to a log, line by line to whoever shows progress.

The program gets a session of its own. When the wait is broken off, by Ctrl-C or because somebody cancelled,
everything that it started ends with it.
"""

import io
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from agent.server.sources import CancelledError

_LOOK_SECONDS = 0.2
_TERM_SECONDS = 5.0
_KILL_SECONDS = 2.0
_CHUNK_BYTES = 65_536


def run_logged(
    command: Sequence[str | Path],
    *,
    log: IO[bytes],
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    cancelled: Callable[[], bool] = lambda: False,
    folder: Path | None = None,
) -> int:
    """Runs `command` to its end.

    Args:
        log: gets everything that is printed, on stdout and stderr.
        on_line: called with each line; a carriage return ends one too.
        folder: where it runs, by default the present folder.

    Returns:
        The exit status, negative for a signal.

    Raises:
        OSError: it cannot be started, or the log cannot be written.
        CancelledError: `cancelled` said so.
    """
    child = subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,
    )
    output = child.stdout or io.BytesIO()
    try:
        _follow(child, output, log, on_line, cancelled)
        return child.wait()
    finally:
        output.close()
        end_with_children(child)


def end_with_children(child: "subprocess.Popen[Any]", patience: float = _TERM_SECONDS) -> None:
    """Ends a process that leads a session, and everything below it, if it still runs.

    A build tool may give each compiler a process group of its own, so signalling one group is not enough.
    """
    if child.poll() is not None:
        return
    below = _descendants(child.pid)
    try:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(patience)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        _kill(below)
        child.wait()


def _follow(
    child: "subprocess.Popen[bytes]",
    output: IO[bytes],
    log: IO[bytes],
    on_line: Callable[[str], None],
    cancelled: Callable[[], bool],
) -> None:
    descriptor = output.fileno()
    rest = b""
    while True:
        if cancelled():
            raise CancelledError
        ready, _, _ = select.select([descriptor], [], [], _LOOK_SECONDS)
        if not ready:
            if child.poll() is not None:
                break  # something that it left behind keeps the pipe open
            continue
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            break
        log.write(chunk)
        *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            on_line(line.decode("utf-8", "replace"))
    if rest:
        on_line(rest.decode("utf-8", "replace"))
    log.flush()


def _descendants(pid: int) -> list[Any]:
    import psutil

    with suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def _kill(processes: list[Any]) -> None:
    import psutil

    for process in processes:
        with suppress(psutil.Error):  # gone already
            process.kill()
    psutil.wait_procs(processes, _KILL_SECONDS)


class Estimate:
    """How long something will still take, from how much of it was done since it began."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin: float | None = None
        self._first = 0

    def seconds_left(self, done: int, total: int) -> float | None:
        """None until there is something to go by."""
        now = self._clock()
        if self._begin is None:
            self._begin, self._first = now, done
        advanced = done - self._first
        if advanced <= 0 or now <= self._begin:
            return None
        return (now - self._begin) / advanced * max(0, total - done)
