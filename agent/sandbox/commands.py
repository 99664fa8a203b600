"""The sandbox of a session: which kind it is, and command lines that run inside it."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent.core.confinement import ConfinementError
from agent.core.hosts import HostList
from agent.sandbox.policy import Policy, WayOut, Wishes, policy_for
from agent.sandbox.probed import Probed

if TYPE_CHECKING:
    from agent.sandbox.proxy import HostProxy, Verdict
    from agent.sandbox.session_folder import SessionFolder

Demand = Literal["auto", "required", "off"]

_HINT = 'install bubblewrap, or set sandbox.mode = "off" to run commands without a sandbox'
NEEDS_BUBBLEWRAP = "sandbox.hosts needs bubblewrap, which does not work or is not installed here"
_MOST_TOLD, _MOST_VERDICTS = 3, 200
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
        hosts: what may be reached where the network may not be used.
        told: hears what was decided about a host, in another thread; of each host once per command.
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
    hosts: HostList = field(default_factory=HostList)
    told: "Callable[[Verdict], None]" = lambda _: None
    _found: Probed | None = field(default=None)
    _folder: "SessionFolder | None" = field(default=None)
    _proxies: "list[HostProxy]" = field(default_factory=list)
    _refused: "dict[str, Verdict]" = field(default_factory=dict)
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
        refused, self._refused = list(self._refused.values()), {}
        if refused:
            return f"(the sandbox: {'; '.join(verdict.reason for verdict in refused[:_MOST_TOLD])})"
        if not self.network() and any(mark in output for mark in _NO_NETWORK):
            return self._about_network(self._found)
        if any(mark in output for mark in _REFUSED):
            return (
                "(the sandbox may be why: outside the workspace nothing can be written, and .git/config, "
                '.git/hooks and secrets are closed; the setting sandbox.writable = ["FOLDER"] opens a folder)'
            )
        return ""

    def close(self) -> None:
        """Removes the session's temporary folder. A later command gets a new one."""
        proxies, self._proxies = self._proxies, []
        for proxy in proxies:
            proxy.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.remove()

    def _about_network(self, found: Probed) -> str:
        if not self.hosts:
            return (
                '(the sandbox has no network; the setting sandbox.network = "allow" allows it, sandbox.hosts '
                "single hosts)"
            )
        if found.kind != "bubblewrap":
            return f"(the sandbox has no network: {NEEDS_BUBBLEWRAP})"
        return "(the sandbox reaches the hosts in sandbox.hosts, by its HTTP proxy and no other way)"

    def _probe(self) -> Probed:
        from agent.sandbox.find import probed  # not needed by a session without commands

        return probed(self.wishes.environment, self.cache)

    def _wrapped(self, found: Probed, arguments: tuple[str, ...], outlives: bool) -> Sequence[str]:
        from agent.sandbox.find import wrapped

        folder = self._temporary()
        policy = policy_for(self.wishes, folder / "tmp", network=self.network(), unreadable=self.unreadable())
        policy = self._with_way_out(found, policy, folder)
        return wrapped(found, policy, arguments, empty_file=folder / "empty", outlives=outlives)

    def _with_way_out(self, found: Probed, policy: Policy, folder: Path) -> Policy:
        """With a proxy for the listed hosts, where the kind of sandbox can offer one."""
        if policy.network or not self.hosts or found.kind != "bubblewrap":
            return policy
        from agent.sandbox.proxy import HostProxy, Rules

        self._proxies = [proxy for proxy in self._proxies if proxy.is_running]
        name = f"network-{secrets.token_hex(4)}"
        proxy = HostProxy(folder / name, Rules(hosts=self.hosts, told=self._told_once()))
        try:
            proxy.start()
        except OSError as error:
            raise ConfinementError(
                f"the sandbox cannot offer the hosts in sandbox.hosts: {error.strerror or error}", _HINT
            ) from None
        self._proxies.append(proxy)
        return replace(policy, way_out=WayOut(proxy.path, self.hosts.local_ports()))

    def _told_once(self) -> "Callable[[Verdict], None]":
        """Passes on the verdicts of one command, each once, and keeps those that refuse for its result."""
        known: set[Verdict] = set()

        def tell(verdict: "Verdict") -> None:
            if verdict in known or len(known) >= _MOST_VERDICTS:
                return
            known.add(verdict)
            if not verdict.allowed:
                self._refused[f"{verdict.host}:{verdict.port}"] = verdict
            self.told(verdict)

        return tell

    def _temporary(self) -> Path:
        """The folder that stands in for `/tmp`, the same for all commands of the session."""
        from agent.sandbox.session_folder import SessionFolder, remove_abandoned

        if self._folder is None or not self._folder.path.is_dir():
            remove_abandoned()
            self._folder = SessionFolder()
        folder = self._folder.path
        (folder / "tmp" / "var").mkdir(parents=True, exist_ok=True)
        (folder / "empty").touch(mode=0o444, exist_ok=True)
        (folder / "closed").touch(mode=0o000, exist_ok=True)
        return folder


def _why(found: Probed) -> str:
    return "; ".join(found.reasons) or "nothing that could confine commands was found"
