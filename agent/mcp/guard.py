"""Runs one MCP server and ends it, with all it has started, when the program that asked for it is gone.

Started by its path as `python -I -S guard.py DESCRIPTOR COMMAND ARGS…` in a session of its own. The
descriptor is the reading end of a pipe that nobody writes to: it ends when its other end is closed, also by
`kill -9`. Imports only the standard library, because it has to start fast and stays in memory as long as the
server.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

PATIENCE_SECONDS = 2.0
"""A server that was told to end has so long before it is killed."""

CANNOT_START = 127
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: Sequence[str]) -> int:
    """Runs the command until it or the pipe ends; returns its exit status."""
    lifeline, command = int(arguments[0]), list(arguments[1:])
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.set_wakeup_fd(wake_writer)
    for number in (signal.SIGCHLD, *_ENDING):
        signal.signal(number, _noted)
    os.set_inheritable(lifeline, False)
    try:
        server = subprocess.Popen(command, process_group=0)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        print(f"cannot start {command[0]}: {reason}", file=sys.stderr)
        return CANNOT_START
    _let_go_of_the_pipes()
    while server.poll() is None:
        readable, _, _ = select.select([lifeline, wake_reader], [], [])
        signals = os.read(wake_reader, 4096) if wake_reader in readable else b""
        if lifeline in readable or any(number in signals for number in _ENDING):
            _end_politely(server)
    status = server.returncode
    _signal_group(server, signal.SIGKILL)
    return status if status >= 0 else 128 - status


def _noted(_number: int, _frame: FrameType | None) -> None:
    """Exists so that a signal wakes the loop; children start with the default again."""


def _let_go_of_the_pipes() -> None:
    """Only the server holds its input and output from now on, so that each side sees the other one leave."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _end_politely(server: "subprocess.Popen[bytes]") -> None:
    _signal_group(server, signal.SIGTERM)
    until = time.monotonic() + PATIENCE_SECONDS
    while server.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    if server.poll() is None:
        _signal_group(server, signal.SIGKILL)
        server.wait()


def _signal_group(server: "subprocess.Popen[bytes]", number: int) -> None:
    """Reaches the server and its helpers; its group outlives it as long as one of them is there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
