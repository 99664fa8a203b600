"""The sandbox of a session: which kind it is, and command lines that run inside it."""

import asyncio
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agent.core.confinement import ConfinementError
from agent.sandbox.policy import Wishes, policy_for
from agent.sandbox.probed import Probed

Demand = Literal["auto", "required", "off"]

_HINT = 'install bubblewrap, or set sandbox.mode = "off" to run commands without a sandbox'
_NO_NETWORK = (
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "getaddrinfo",
    "EAI_AGAIN",
    "Could not resolve proxy",
    "nodename nor servname",
    "Failed to resolve",
)
_REFUSED = (
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "EROFS",
    "EACCES",
    "Device or resource busy",
)


@dataclass(slots=True, kw_only=True, weakref_slot=True)
class Sandbox:
    """A `core.confinement.Confinement`. The kind is found out before the first command, not earlier.

    Attributes:
        demand: `auto` confines where it works, `required` refuses commands where it does not.
        network: whether the network may be used, asked before each command.
        cache: file for what was found out; None keeps nothing.
        unreadable: files and folders of the workspace that rules keep from being read, asked before each
            command.
    """

    wishes: Wishes
    demand: Demand
    network: Callable[[], bool]
    cache: Path | None = None
    find: Callable[[], Probed] | None = None
    unreadable: Callable[[], tuple[Path, ...]] = tuple
    _found: Probed | None = field(default=None)
    _folder: Path | None = field(default=None)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def confined(self, arguments: Sequence[str], *, outlives: bool = False) -> Sequence[str]:
        if self.demand == "off":
            return arguments
        found = await self.kind()
        if found.kind == "none":
            if self.demand == "required":
                raise ConfinementError(
                    f"the sandbox that the settings demand does not work here: {_why(found)}", _HINT
                )
            return arguments
        return await asyncio.to_thread(self._wrapped, found, tuple(arguments), outlives)

    async def kind(self) -> Probed:
        """Which kind is in force. Tries it the first time, in a thread, which takes some 20 ms."""
        async with self._lock:
            if self._found is None:
                self._found = await asyncio.to_thread(self.find or self._probe)
            return self._found

    async def in_force(self) -> bool:
        return self.demand != "off" and (await self.kind()).kind != "none"

    def explanation(self, output: str) -> str:
        if self.demand == "off" or self._found is None or self._found.kind == "none":
            return ""
        if not self.network() and any(mark in output for mark in _NO_NETWORK):
            return '(the sandbox has no network; the setting sandbox.network = "allow" allows it)'
        if any(mark in output for mark in _REFUSED):
            return (
                "(the sandbox may be why: outside the workspace nothing can be written, and .git/config, "
                '.git/hooks and secrets are closed; the setting sandbox.writable = ["FOLDER"] opens a folder)'
            )
        return ""

    def close(self) -> None:
        """Removes the session's temporary folder. A later command gets a new one."""
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _probe(self) -> Probed:
        from agent.sandbox.find import probed  # not needed by a session without commands

        return probed(self.wishes.environment, self.cache)

    def _wrapped(self, found: Probed, arguments: tuple[str, ...], outlives: bool) -> Sequence[str]:
        from agent.sandbox.find import wrapped

        folder = self._temporary()
        policy = policy_for(self.wishes, folder / "tmp", network=self.network(), unreadable=self.unreadable())
        return wrapped(found, policy, arguments, empty_file=folder / "empty", outlives=outlives)

    def _temporary(self) -> Path:
        """The folder that stands in for `/tmp`, the same for all commands of the session."""
        if self._folder is None or not self._folder.is_dir():
            self._folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="agent-sandbox-")))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        (self._folder / "tmp" / "var").mkdir(parents=True, exist_ok=True)
        (self._folder / "empty").touch(mode=0o444, exist_ok=True)
        (self._folder / "closed").touch(mode=0o000, exist_ok=True)
        return self._folder


def _why(found: Probed) -> str:
    return "; ".join(found.reasons) or "nothing that could confine commands was found"
