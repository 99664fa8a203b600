"""One MCP server in use. One task enters and leaves its client; requests may come from any other.

The library's client holds cancel scopes that must be left by the task that entered them, whatever happens to
the turns that use it in between.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.core.errors import AgentError
from agent.mcp.config import ServerSpec, expand_server
from agent.mcp.library import load_library
from agent.mcp.log import ServerLog
from agent.mcp.stdio import LARGEST_MESSAGE_BYTES, Ending, stdio_transport
from agent.mcp.text import one_line

MOST_TOOLS = 1000
MOST_PAGES = 100
_LONGEST_CALL_FACTOR = 10
"""Progress prolongs a call, but not for ever."""


class ServerGoneError(AgentError):
    """The connection is over; the text says why."""


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server describes it. Nothing in it is to be trusted."""

    name: str
    description: str
    schema: Any
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a connection needs besides its configuration.

    `environment` is for the server's process, `variables` for `${NAME}` in the configuration: keys, say.
    """

    workspace: Path
    environment: Mapping[str, str]
    variables: Mapping[str, str]


Progress = Callable[[str], None]


class Connection:
    """Connects with `open`, once; not used again after `close`, or after `ending` came."""

    def __init__(self, spec: ServerSpec, around: Surroundings, log: ServerLog) -> None:
        self.spec = spec
        self.tools: list[RemoteTool] = []
        self.problems: list[str] = []
        self.about = ""
        self.list_changed = False
        self.ending = Ending()
        self._around = around
        self._log = log
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Any] | None = None
        self._owner: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connects and lists the tools. Raises AgentError; nothing is left running then."""
        self._ready = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(self._ready))
        try:
            await asyncio.shield(self._ready)
        except BaseException:
            await self.close()
            raise

    @property
    def is_alive(self) -> bool:
        return self._owner is not None and not self._owner.done() and not self.ending.event.is_set()

    async def call(self, tool: str, arguments: Mapping[str, Any], progress: Progress) -> Any:
        """The server's `CallToolResult`.

        Raises:
            ServerGoneError: the connection ended before the answer came.
            AgentError: the server refuses, answers with what is no result, or takes too long.
        """
        if self._ready is None or not self.is_alive:
            raise ServerGoneError(f"the MCP server {self.spec.name} is gone: {self.ending.reason}")
        client = self._ready.result()
        asking = asyncio.ensure_future(self._ask(client, tool, arguments, progress))
        over = asyncio.ensure_future(self.ending.event.wait())
        try:
            await asyncio.wait({asking, over}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                # The answer may have been the last thing it said.
                await asyncio.wait({asking}, timeout=0.2)
            if not asking.done() or (over.done() and asking.exception() is not None):
                raise ServerGoneError(f"the MCP server {self.spec.name} ended: {self.ending.reason}")
            return asking.result()
        finally:
            asking.cancel()
            over.cancel()
            await asyncio.gather(asking, over, return_exceptions=True)

    async def close(self) -> None:
        """Ends the connection and the process behind it; waits until both are gone."""
        self._stop.set()
        owner = self._owner
        if owner is None:
            return
        done, _ = await asyncio.wait({owner}, timeout=6.0)
        if not done:
            owner.cancel()
        await asyncio.gather(owner, return_exceptions=True)

    async def _own(self, ready: "asyncio.Future[Any]") -> None:
        import anyio

        spec = self.spec
        try:
            await load_library()  # not on the server's time
            with anyio.fail_after(spec.start_seconds) as scope:
                async with self._client() as client:
                    if await self._listed_unless_stopped(client):
                        scope.deadline = float("inf")
                        ready.set_result(client)
                        await self._until_over()
        except TimeoutError:
            self._failed(ready, f"did not answer within {spec.start_seconds:g} seconds")
        except AgentError as error:
            if not ready.done():
                ready.set_exception(error)
            self.ending.note(error.message)
        except Exception as error:
            self._failed(ready, self.ending.reason or _reason(error))
        finally:
            self._failed(ready, self.ending.reason or "was stopped")
            if not ready.cancelled():
                ready.exception()  # whoever waits has it; nobody else needs to be warned

    async def _listed_unless_stopped(self, client: Any) -> bool:
        listing = asyncio.ensure_future(self._list(client))
        waits = [asyncio.ensure_future(event.wait()) for event in (self._stop, self.ending.event)]
        try:
            await asyncio.wait({listing, *waits}, return_when=asyncio.FIRST_COMPLETED)
            if not listing.done():
                return False
            listing.result()
            return True
        finally:
            for task in (listing, *waits):
                task.cancel()
            await asyncio.gather(listing, *waits, return_exceptions=True)

    async def _until_over(self) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (self._stop, self.ending.event)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()

    def _failed(self, ready: "asyncio.Future[Any]", reason: str) -> None:
        self.ending.note(reason)
        if not ready.done():
            name = self.spec.name
            hint = f"look at its address, and try it with `agent mcp test {name}`"
            if self.spec.transport == "stdio":
                hint = f"`agent mcp logs {name}` shows what it said"
            ready.set_exception(AgentError(f"the MCP server {self.spec.name} is not usable: {reason}", hint))

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        import mcp_types
        from mcp.client.client import Client

        from agent import __version__

        spec = expand_server(self.spec, self._around.variables)

        async def handle(message: Any) -> None:
            root = getattr(message, "root", message)
            if getattr(root, "method", "") == "notifications/tools/list_changed":
                self.list_changed = True

        async def roots(context: Any) -> Any:
            uri = self._around.workspace.resolve().as_uri()
            return mcp_types.ListRootsResult.model_validate({"roots": [{"uri": uri, "name": "workspace"}]})

        async with Client(
            self._transport(spec),
            message_handler=handle,
            list_roots_callback=roots,
            client_info=mcp_types.Implementation(name="dflash-agent", version=__version__),
            cache=None,
        ) as client:
            info = client.server_info
            self.about = one_line(f"{info.name} {info.version}", 80) if info else ""
            yield client

    def _transport(self, spec: ServerSpec) -> Any:
        if spec.transport == "stdio":
            return stdio_transport(
                spec,
                folder=self._around.workspace,
                environment=self._around.environment,
                log=self._log,
                ending=self.ending,
            )
        from agent.mcp.web import web_transport

        return web_transport(spec, largest_bytes=LARGEST_MESSAGE_BYTES)

    async def _list(self, client: Any) -> None:
        """All pages of tools, up to a number that no honest server has."""
        if client.server_capabilities.tools is None:
            self.problems.append("it has no tools")
            return
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            self.tools += [_remote(tool) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                return
            if len(self.tools) >= MOST_TOOLS or cursor in seen:
                break
            seen.add(cursor)
        del self.tools[MOST_TOOLS:]
        self.problems.append(f"its list of tools has no end; the first {len(self.tools)} are used")

    async def _ask(self, client: Any, tool: str, arguments: Mapping[str, Any], progress: Progress) -> Any:
        import anyio
        import mcp_types
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        name, seconds = self.spec.name, self.spec.call_seconds
        latest = anyio.current_time() + seconds * _LONGEST_CALL_FACTOR

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            scope.deadline = min(latest, anyio.current_time() + seconds)
            share = f"{done:g}/{total:g}" if total else f"{done:g}"
            progress(f"{share} {one_line(message or '', 200)}".rstrip() + "\n")

        request = mcp_types.CallToolRequest(
            params=mcp_types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        )
        try:
            with anyio.fail_after(seconds) as scope:
                # Not `call_tool`: that checks results with schemas of the server's, of any cost.
                return await client.session.send_request(
                    request, mcp_types.CallToolResult, progress_callback=on_progress
                )
        except TimeoutError:
            raise AgentError(
                f"{name} did not answer within {seconds:g} seconds; the call was given up"
            ) from None
        except MCPError as error:
            raise AgentError(f"{name} refuses: {one_line(str(error), 500)}") from None
        except ValidationError:
            raise AgentError(f"{name} answered with something that is no result of a tool") from None


def _remote(tool: Any) -> RemoteTool:
    hints = tool.annotations
    read_only = bool(hints is not None and hints.read_only_hint)
    return RemoteTool(tool.name, tool.description or "", tool.input_schema, read_only)


def _reason(error: BaseException) -> str:
    """The innermost of grouped errors in one line."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    text = one_line(str(error), 200)
    return text if text else type(error).__name__
