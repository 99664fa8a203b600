"""Ending a child process together with everything that it started."""

import os
import signal
from collections.abc import Mapping
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
    """Whether the group still has a member, be it only one that nobody has waited for."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


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
