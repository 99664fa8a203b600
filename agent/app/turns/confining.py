"""The sandbox of a session, made of its settings."""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.model import Settings
from agent.core.events import Event, NetworkAccess, Notice
from agent.core.hosts import HostList
from agent.resources import config_folder, expand_home, state_folder
from agent.sandbox.commands import Sandbox
from agent.sandbox.policy import Wishes

if TYPE_CHECKING:
    from agent.sandbox.proxy import Verdict

CACHE_NAME = "sandbox.json"


def sandbox_for(
    workspace: Path,
    settings: Settings,
    environment: Mapping[str, str],
    *,
    unattended: Callable[[], bool],
    readable: tuple[Path, ...] = (),
    emit: Callable[[Event], None] | None = None,
) -> Sandbox:
    """The sandbox for the commands of a session. Nothing is tried before the first command.

    Args:
        unattended: whether nobody watches; commands have no network then unless the settings say so.
        readable: files and folders in the program's own state that commands may read.
        emit: gets what was decided about hosts, in the event loop that this is called in.
    """
    section = settings.sandbox
    chosen = {"allow": lambda: True, "off": lambda: False, "listed": lambda: False}
    return Sandbox(
        wishes=Wishes(
            workspace=workspace,
            homes=homes(environment),
            environment=environment,
            writable=tuple(_place(name, workspace) for name in section.writable),
            hidden=tuple(_place(name, workspace) for name in section.hidden),
            private=(config_folder(), state_folder()),
            readable=readable,
        ),
        demand=section.mode,
        network=chosen.get(section.network, lambda: not unattended()),
        hosts=HostList(() if section.network == "off" else section.hosts),
        told=_teller(emit) if emit is not None and section.hosts else lambda _: None,
        cache=state_folder() / CACHE_NAME,
    )


def _teller(emit: Callable[[Event], None]) -> "Callable[[Verdict], None]":
    """Passes verdicts from the thread of a proxy to the event loop of the session; a person sees refusals."""
    loop = asyncio.get_running_loop()
    shown: set[tuple[str, int]] = set()

    def pass_on(verdict: "Verdict") -> None:
        host, port, allowed = verdict.host, verdict.port, verdict.allowed
        emit(NetworkAccess(host=host, port=port, allowed=allowed, reason=verdict.reason))
        if not allowed and (host, port) not in shown:
            shown.add((host, port))
            emit(Notice(text=f"the sandbox: {verdict.reason}", level="warning"))

    def tell(verdict: "Verdict") -> None:
        with suppress(RuntimeError):  # the session has ended
            loop.call_soon_threadsafe(pass_on, verdict)

    return tell


async def required_or_refused(sandbox: Sandbox) -> None:
    """Raises ConfinementError where the settings demand a sandbox and none works: better now than later."""
    if sandbox.demand == "required":
        await sandbox.confined(("true",))


def homes(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The person's home folder by the environment, and by the system's record of accounts."""
    found = [Path(environment["HOME"])] if environment.get("HOME", "").startswith("/") else []
    try:
        import pwd

        found.append(Path(pwd.getpwuid(os.geteuid()).pw_dir))
    except (ImportError, KeyError):
        pass
    return tuple(dict.fromkeys(found))


def _place(name: str, workspace: Path) -> Path:
    return workspace / expand_home(name)
