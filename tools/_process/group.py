"""Ending a child process together with everything that it started."""

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.lifeline import MARK

if TYPE_CHECKING:
    from asyncio.subprocess import Process

GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.02
_PROCESSES = Path("/proc")
_PIECE_BYTES = 1 << 16


async def end_group(process: "Process", mark: str = "") -> None:
    """Ends the process group that `process` leads: politely, after two seconds by force.

    Whatever happens meanwhile, a second cancellation included, the group is killed at the end.

    Args:
        mark: ends the processes that carry it too, those that left the group among them.
    """
    import asyncio

    signal_all(process.pid, mark, signal.SIGTERM)
    try:
        for _ in range(round(GRACE_SECONDS / _POLL_SECONDS)):
            if process.returncode is not None and not is_alive(process.pid) and not any(_marked(mark)):
                break
            await asyncio.sleep(_POLL_SECONDS)
    finally:
        signal_all(process.pid, mark, signal.SIGKILL)
    await process.wait()


def end_all(leaders: Iterable[int], mark: str) -> None:
    """Ends groups and marked processes at once: politely, after half of the grace by force.

    What is killed takes a moment to be gone, longer on a busy machine. That is waited for as long again.
    """
    leaders = tuple(leaders)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for leader in leaders:
            signal_group(leader, number)
        _signal_marked(mark, number)
        if _all_gone(leaders, mark, GRACE_SECONDS / 2):
            return


def _all_gone(leaders: Iterable[int], mark: str, seconds: float) -> bool:
    """Waits until none of them is alive, or for so long."""
    import time

    for _ in range(round(seconds / _POLL_SECONDS)):
        if not any(map(is_alive, leaders)) and not any(_marked(mark)):
            return True
        time.sleep(_POLL_SECONDS)
    return False


def kill_commands_of(program: int) -> None:
    """Kills what the commands of a program still have running. Its marks begin with its process id.

    A command's first process may be gone already while others of it ignore that they were asked to end.
    """
    for process_id in _carrying(f"\0{MARK}={program}-".encode()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process_id, signal.SIGKILL)


def signal_all(leader: int, mark: str, number: signal.Signals) -> None:
    signal_group(leader, number)
    _signal_marked(mark, number)


def signal_group(leader: int, number: signal.Signals) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return  # gone, or only processes of another user are left


def is_alive(leader: int) -> bool:
    """Whether the group still has a member that is not dead."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # Dead members count for the signal until their parent asks for them, which in a container without
    # an init process may never happen.
    if not _PROCESSES.is_dir():
        return True
    return any(_is_in(leader, number) and _group_if_alive(number) == leader for number in _numbers())


def _is_in(leader: int, process_id: int) -> bool:
    """Asks the kernel, which is much quicker than to read about each process there is."""
    try:
        return os.getpgid(process_id) == leader
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # where the kernel says no, the file of the process may tell


def _signal_marked(mark: str, number: signal.Signals) -> None:
    for process_id in _marked(mark):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process_id, number)


def _marked(mark: str) -> Iterator[int]:
    """Living processes with this mark, or one that begins with it and a dot. Only Linux tells."""
    return _carrying(f"\0{MARK}={mark}".encode(), ends=(b"\0", b".", b"")) if mark else iter(())


def _carrying(words: bytes, ends: tuple[bytes, ...] = ()) -> Iterator[int]:
    """Living processes whose environment holds `words`, with one of `ends` behind them if there are any."""
    if not _PROCESSES.is_dir():
        return
    own = os.getpid()
    for number in _numbers():
        environment = b"\0" + _about(number, "environ")
        at = environment.find(words)
        end = at + len(words)
        fits = at >= 0 and (not ends or environment[end : end + 1] in ends)
        if fits and number != own and _group_if_alive(number) is not None:
            yield number


def _numbers() -> Iterator[int]:
    """All processes that there are."""
    with os.scandir(_PROCESSES) as entries:
        return (int(name) for name in [entry.name for entry in entries] if name.isdigit())


def _about(process_id: int, name: str) -> bytes:
    """A file of the kernel's on a process; empty if it is gone, or another user's.

    There may be thousands of processes, and a file object for each would take most of the time.
    """
    try:
        descriptor = os.open(f"{_PROCESSES}/{process_id}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        pieces = list(iter(lambda: os.read(descriptor, _PIECE_BYTES), b""))
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    return b"".join(pieces)


def _group_if_alive(process_id: int) -> int | None:
    fields = _about(process_id, "stat").rpartition(b")")[2].split()
    if not fields:
        return None
    state, group = fields[0], int(fields[2])  # see proc_pid_stat(5); the name before may hold anything
    return None if state in (b"Z", b"X") else group
