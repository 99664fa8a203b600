"""The way out of a sandbox without network: a proxy that connects to listed hosts and to no others.

It runs in a thread of its own, is reached by a socket in the file system, and ends with the sandbox: a helper
in there (`bridge_entry.py`) holds one connection open as long as anything runs.

Sources: RFC 9110 (7.6, 9.3.6), RFC 9112 (3.2, 9.6).
"""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.core.hosts import HostList, plain_address
from agent.sandbox.bridge_entry import LIFELINE
from agent.sandbox.proxy_words import BadRequestError, Target, answer, closing_head, read_target

SETTING = "sandbox.hosts"
_HEAD_BYTES = 1 << 16
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 30.0
_CHUNK_BYTES = 1 << 16
_MOST_CONNECTIONS = 256
_CLOSING_SECONDS = 2.0

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host; raises OSError where there are none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided about a host. `reason` says why not, and what would allow it; else by what."""

    host: str
    port: int
    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the proxy goes by. `told` hears of each verdict, in the proxy's thread."""

    hosts: HostList
    told: Callable[[Verdict], None] = lambda _: None
    resolve: Resolve | None = None


class RefusedError(Exception):
    """The host may not be reached; the message is for the program that asked."""


@dataclass(slots=True)
class HostProxy:
    """Serves one sandbox. `start` raises OSError where the socket cannot be made."""

    path: Path
    rules: Rules
    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None
    _done: asyncio.Event = field(default_factory=asyncio.Event)
    _lifelines: int = 0
    _connections: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def ends_within(self, seconds: float) -> bool:
        """Waits until nothing of the sandbox is left; whether that is so."""
        if self._thread is not None:
            self._thread.join(seconds)
        return not self.is_running

    def start(self) -> None:
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(str(self.path))
            self.path.chmod(0o600)
            listener.listen(128)
        except OSError:
            listener.close()
            raise
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop, listener), name="network of a sandbox", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Ends all connections. Waits for that, for a moment."""
        if self._loop is None or self._thread is None:
            return
        with suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._done.set)
        self.ends_within(_CLOSING_SECONDS)

    def _run(self, loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
        try:
            loop.run_until_complete(self._serve(listener))
        finally:
            loop.close()

    async def _serve(self, listener: socket.socket) -> None:
        server = await asyncio.start_unix_server(self._accept, sock=listener, limit=_HEAD_BYTES)
        try:
            await self._done.wait()
        finally:
            server.close()
            tasks = list(self._connections)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(OSError):
                self.path.unlink()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._handle(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            if head == LIFELINE:
                await self._hold(reader)
            elif len(self._connections) > _MOST_CONNECTIONS:
                writer.write(answer(503, "too many connections at once"))
            else:
                await self._relay(head, reader, writer)
        except RefusedError as refused:
            writer.write(answer(403, str(refused)))
        except BadRequestError as bad:
            writer.write(answer(400, str(bad)))
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the program went away, or says nothing that could be answered
        finally:
            await _closed(writer)

    async def _hold(self, reader: asyncio.StreamReader) -> None:
        self._lifelines += 1
        try:
            while await reader.read(_CHUNK_BYTES):
                continue
        finally:
            self._lifelines -= 1
            if not self._lifelines:
                self._done.set()

    async def _relay(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = read_target(head)
        addresses = await self._addresses(target)
        upstream = await _connected(addresses, target.port)
        if upstream is None:
            writer.write(answer(502, f"{target.shown} does not answer"))
            return
        far_reader, far_writer = upstream
        try:
            if target.is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
                return
            far_writer.write(target.head)
            sending = asyncio.ensure_future(_pump(reader, far_writer))
            try:
                await _answer_back(far_reader, writer)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        finally:
            await _closed(far_writer)

    async def _addresses(self, target: Target) -> list[str]:
        """Where a host may be reached. Raises RefusedError, and tells of what was decided."""
        try:
            found = await self._allowed(target)
        except RefusedError as refused:
            self.rules.told(Verdict(target.host, target.port, False, str(refused)))
            raise
        self.rules.told(Verdict(target.host, target.port, True, f"listed in {SETTING}"))
        return found

    async def _allowed(self, target: Target) -> list[str]:
        hosts, host, port = self.rules.hosts, target.host, target.port
        if not hosts.covers(host, port):
            raise RefusedError(f"{target.shown} is not allowed; the setting {SETTING} would allow it")
        if plain_address(host) is not None:
            return [host.strip("[]")]
        try:
            found = await (self.rules.resolve or _resolved)(host, port)
        except (OSError, UnicodeError):
            return []
        usable = []
        for text in found:
            address = plain_address(text)
            if address is not None and hosts.may_lead_to(host, address, port):
                usable.append(text)
        if found and not usable:
            raise RefusedError(
                f"{target.shown} leads to the private address {found[0]}; "
                f"the setting {SETTING} would allow it if the address is named too"
            )
        return usable


async def _resolved(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


async def _connected(
    addresses: Sequence[str], port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    """To the very addresses that were judged: looked up again, a name might lead elsewhere."""
    for address in addresses:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await asyncio.open_connection(address, port, limit=_HEAD_BYTES)
    return None


async def _answer_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes on the answer, with the word that the connection ends with it: each request is judged anew."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            writer.write(answer(502, "the host gave no answer that is HTTP"))
            return
        status = head.split(b" ", 2)[1:2]
        is_interim = status < [b"2"] and status != [b"101"]
        writer.write(head if is_interim else closing_head(head))
        if not is_interim:
            break
    await _pump(reader, writer)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def _closed(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.CancelledError):
        writer.close()
        await writer.wait_closed()
