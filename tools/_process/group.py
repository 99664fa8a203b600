"""Ending a child process together with everything that it started."""

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tools._process.environment import MARK

if TYPE_CHECKING:
    from asyncio.subprocess import Process

GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.02
_PROCESSES = Path("/proc")


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
    """Ends groups and marked processes at once, without waiting longer than half of the grace."""
    import time

    leaders = tuple(leaders)
    for leader in leaders:
        signal_group(leader, signal.SIGTERM)
    _signal_marked(mark, signal.SIGTERM)
    for _ in range(round(GRACE_SECONDS / 2 / _POLL_SECONDS)):
        if not any(map(is_alive, leaders)) and not any(_marked(mark)):
            return
        time.sleep(_POLL_SECONDS)
    for leader in leaders:
        signal_group(leader, signal.SIGKILL)
    _signal_marked(mark, signal.SIGKILL)


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
    return any(_group_if_alive(entry) == leader for entry in _entries())


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
    own = str(os.getpid())
    for entry in _entries():
        try:
            environment = b"\0" + (entry / "environ").read_bytes()
        except OSError:  # gone, or another user's
            continue
        at = environment.find(words)
        end = at + len(words)
        fits = at >= 0 and (not ends or environment[end : end + 1] in ends)
        if fits and entry.name != own and _group_if_alive(entry) is not None:
            yield int(entry.name)


def _entries() -> Iterator[Path]:
    return (entry for entry in _PROCESSES.iterdir() if entry.name.isdigit())


def _group_if_alive(process: Path) -> int | None:
    try:
        fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    state, group = fields[0], int(fields[2])  # see proc_pid_stat(5); the name before may hold anything
    return None if state in (b"Z", b"X") else group
