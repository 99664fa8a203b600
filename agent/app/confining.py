"""The sandbox of a session, made of its settings."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.config.model import Settings
from agent.resources import config_folder, expand_home, state_folder
from agent.sandbox.commands import Sandbox
from agent.sandbox.policy import Wishes

CACHE_NAME = "sandbox.json"


def sandbox_for(
    workspace: Path,
    settings: Settings,
    environment: Mapping[str, str],
    *,
    unattended: Callable[[], bool],
    readable: tuple[Path, ...] = (),
) -> Sandbox:
    """The sandbox for the commands of a session. Nothing is tried before the first command.

    Args:
        unattended: whether nobody watches; commands have no network then unless the settings say so.
        readable: files and folders in the program's own state that commands may read.
    """
    section = settings.sandbox
    network = {"allow": lambda: True, "off": lambda: False}.get(section.network, lambda: not unattended())
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
        network=network,
        cache=state_folder() / CACHE_NAME,
    )


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
