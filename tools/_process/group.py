"""Ending a child process together with everything that it started."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio.subprocess import Process

GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.02


async def end_group(process: "Process") -> None:
    """Ends the process group that `process` leads: politely, after two seconds by force.

    Whatever happens meanwhile, a second cancellation included, the group is killed at the end.
    """
    import asyncio

    try:
        signal_group(process.pid, signal.SIGTERM)
        for _ in range(round(GRACE_SECONDS / _POLL_SECONDS)):
            if process.returncode is not None and not is_alive(process.pid):
                break
            await asyncio.sleep(_POLL_SECONDS)
    finally:
        signal_group(process.pid, signal.SIGKILL)
    await process.wait()


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
    processes = Path("/proc")
    if not processes.is_dir():
        return True
    return any(_is_live_member(entry, leader) for entry in processes.iterdir() if entry.name.isdigit())


def _is_live_member(process: Path, leader: int) -> bool:
    try:
        fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    state, group = fields[0], int(fields[2])  # see proc_pid_stat(5); the name before may hold anything
    return group == leader and state not in (b"Z", b"X")


def quiet_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for programs that nobody can answer: no pager, editor, prompt or colour."""
    return {
        **environment,
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "MANPAGER": "cat",
        "SYSTEMD_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "EDITOR": "true",
        "VISUAL": "true",
        "SSH_ASKPASS_REQUIRE": "never",
        "DEBIAN_FRONTEND": "noninteractive",
        "PIP_NO_INPUT": "1",
        "PYTHONUNBUFFERED": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
