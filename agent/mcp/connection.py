"""One MCP server in use. One task enters and leaves its client; requests may come from any other.

The library's client holds cancel scopes that must be left by the task that entered them, whatever happens to
the turns that use it in between.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.errors import AgentError
from agent.core.questions import Asker, Reply
from agent.mcp.config import ServerSpec, expand_server
from agent.mcp.elicitation import as_question, content_of
from agent.mcp.library import load_library
from agent.mcp.listing import Offer, list_offer
from agent.mcp.log import ServerLog
from agent.mcp.requests import Progress, Requests
from agent.mcp.stdio import LARGEST_MESSAGE_BYTES, Ending, stdio_transport
from agent.mcp.text import one_line

if TYPE_CHECKING:
    from agent.mcp.sign_in import Signing

_CHANGES = frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))
_WANTS_SIGN_IN = (401, 403)
_KNOWS_NO_STREAMABLE_HTTP = (400, 404, 405)
"""What a server that speaks only SSE says to a first request (MCP 2025-11-25, backwards compatibility)."""


class ServerGoneError(AgentError):
    """The connection is over; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a connection needs besides its configuration.

    `environment` is for the server's process, `variables` for `${NAME}` in the configuration: keys, say.
    `ask` puts a server's questions to a person; without it they are declined. `signing` has the tokens of
    servers that were signed in to.
    """

    workspace: Path
    environment: Mapping[str, str]
    variables: Mapping[str, str]
    ask: Asker | None = None
    signing: "Signing | None" = None


class Connection:
    """Connects with `open`, once; not used again after `close`, or after `ending` came."""

    def __init__(self, spec: ServerSpec, around: Surroundings, log: ServerLog) -> None:
        self.spec = spec
        self.offer = Offer()
        self.about = ""
        self.list_changed = False
        self.ending = Ending()
        self._around = around
        self._log = log
        self._requests = Requests(spec.name, spec.call_seconds)
        self._asking: set[asyncio.Future[Reply]] = set()
        self._status = 0
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Any] | None = None
        self._owner: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connects and lists the tools. Raises AgentError; nothing is left running then.

        An address that does not know streamable HTTP is tried once more as one of an old server.
        """
        try:
            await self._open()
        except AgentError as error:
            if self.spec.transport != "http" or self._status not in _KNOWS_NO_STREAMABLE_HTTP:
                raise
            self.spec = replace(self.spec, transport="sse")
            self.ending, self._stop = Ending(), asyncio.Event()
            try:
                await self._open()
            except AgentError:
                if self._status in _WANTS_SIGN_IN:
                    raise
                raise error from None

    async def _open(self) -> None:
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
        """The server's `CallToolResult`. Cancelled, it tells the server so. See `_through` for errors."""
        return await self._through(lambda client: self._requests.call_tool(client, tool, arguments, progress))

    async def get_prompt(self, prompt: str, arguments: Mapping[str, str]) -> Any:
        """The server's `GetPromptResult`. See `_through` for errors."""
        return await self._through(lambda client: self._requests.get_prompt(client, prompt, arguments))

    async def read_resource(self, uri: str) -> Any:
        """The server's `ReadResourceResult`. See `_through` for errors."""
        return await self._through(lambda client: self._requests.read_resource(client, uri))

    async def list_again(self) -> None:
        """Asks anew what is offered, after the server said that it has changed. See `_through` for errors."""
        self.list_changed = False
        self.offer = await self._through(self._listed_again)

    async def _listed_again(self, client: Any) -> Offer:
        import anyio

        try:
            with anyio.fail_after(self.spec.start_seconds):
                return await list_offer(client, self.spec.start_seconds)
        except TimeoutError:
            raise AgentError(f"{self.spec.name} did not list its tools again in time") from None
        except Exception as error:
            raise AgentError(f"{self.spec.name} cannot list its tools again: {_reason(error)}") from None

    async def _through(self, request: Callable[[Any], Awaitable[Any]]) -> Any:
        """What `request` gives.

        Raises:
            ServerGoneError: the connection ended before the answer came.
            AgentError: the server refuses, answers with what is no result, or takes too long.
        """
        if self._ready is None or not self.is_alive:
            raise ServerGoneError(f"the MCP server {self.spec.name} is gone: {self.ending.reason}")
        asking = asyncio.ensure_future(request(self._ready.result()))
        over = asyncio.ensure_future(self.ending.event.wait())
        try:
            await asyncio.wait({asking, over}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                # The answer may have been the last thing it said.
                await asyncio.wait({asking}, timeout=0.2)
            if not asking.done() or (over.done() and asking.exception() is not None):
                raise ServerGoneError(f"the MCP server {self.spec.name} ended: {self.ending.reason}")
            return asking.result()
        except AgentError as error:
            raise self._wanting_sign_in(error) from None
        finally:
            asking.cancel()
            over.cancel()
            await asyncio.gather(asking, over, return_exceptions=True)
            if not self._requests.clocks:
                self._take_questions_back()

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
                        await self._until_over(client)
        except TimeoutError:
            self._failed(ready, f"did not answer within {spec.start_seconds:g} seconds")
        except Exception as error:
            inner = _innermost(error)
            if isinstance(inner, AgentError):
                self.ending.note(inner.message)
                if not ready.done():
                    ready.set_exception(inner)
            else:
                self._failed(ready, self.ending.reason or _reason(error))
        finally:
            self._failed(ready, self.ending.reason or "was stopped")
            if not ready.cancelled():
                ready.exception()  # whoever waits has it; nobody else needs to be warned

    async def _listed_unless_stopped(self, client: Any) -> bool:
        listing = asyncio.ensure_future(list_offer(client, self.spec.start_seconds))
        waits = [asyncio.ensure_future(event.wait()) for event in (self._stop, self.ending.event)]
        try:
            await asyncio.wait({listing, *waits}, return_when=asyncio.FIRST_COMPLETED)
            if not listing.done():
                return False
            self.offer = listing.result()
            return True
        finally:
            for task in (listing, *waits):
                task.cancel()
            await asyncio.gather(listing, *waits, return_exceptions=True)

    async def _until_over(self, client: Any) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (self._stop, self.ending.event)]
        news = asyncio.ensure_future(self._hear_of_changes(client))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._take_questions_back()
            for task in (*waits, news):
                task.cancel()
            await asyncio.gather(news, return_exceptions=True)

    async def _hear_of_changes(self, client: Any) -> None:
        """Has a server of the 2026-07-28 revision tell of changes; others do so by themselves."""
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
        from mcp.shared.exceptions import MCPError

        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as changes:
                async for _ in changes:
                    self.list_changed = True

    def _failed(self, ready: "asyncio.Future[Any]", reason: str) -> None:
        self.ending.note(reason)
        if not ready.done():
            name = self.spec.name
            hint = f"look at its address, and try it with `agent mcp test {name}`"
            if self.spec.transport == "stdio":
                hint = f"`agent mcp logs {name}` shows what it said"
            error = AgentError(f"the MCP server {self.spec.name} is not usable: {reason}", hint)
            ready.set_exception(self._wanting_sign_in(error))

    def _wanting_sign_in(self, error: AgentError) -> AgentError:
        """`error`, or what is behind it where the server has refused us for want of a token."""
        if self._status not in _WANTS_SIGN_IN:
            return error
        name, status = self.spec.name, self._status
        if any(header.lower() == "authorization" for header in self.spec.headers):
            return AgentError(
                f"the MCP server {name} refuses the Authorization header (HTTP {status})",
                "correct the header in its configuration",
            )
        return AgentError(
            f"the MCP server {name} wants a sign-in (HTTP {status})", f"`agent mcp login {name}` signs in"
        )

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        import mcp_types
        from mcp.client.client import Client

        from agent import __version__

        spec = expand_server(self.spec, self._around.variables)

        async def handle(message: Any) -> None:
            root = getattr(message, "root", message)
            if getattr(root, "method", "") in _CHANGES:
                self.list_changed = True

        async def roots(context: Any) -> Any:
            uri = self._around.workspace.resolve().as_uri()
            return mcp_types.ListRootsResult.model_validate({"roots": [{"uri": uri, "name": "workspace"}]})

        async with Client(
            self._transport(spec),
            message_handler=handle,
            list_roots_callback=roots,
            elicitation_callback=self._elicited,
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

        signing = self._around.signing
        return web_transport(
            spec,
            largest_bytes=LARGEST_MESSAGE_BYTES,
            auth=signing.auth_for(spec) if signing is not None else None,
            answered=self._note_status,
        )

    def _note_status(self, status: int) -> None:
        self._status = status

    async def _elicited(self, context: Any, params: Any) -> Any:
        """Answers a question of the server's. Only what belongs to a request of ours reaches a person."""
        import mcp_types

        question = as_question(self.spec.name, params)
        if question is None:
            return mcp_types.ErrorData(code=-32602, message="this form cannot be shown")
        reply = await self._reply_to(question)
        if reply.action != "accept" or question.url:
            return mcp_types.ElicitResult(action=reply.action)
        content, problems = content_of(reply, question, params.requested_schema)
        if problems:
            return mcp_types.ElicitResult(action="cancel")
        return mcp_types.ElicitResult(action="accept", content=content)

    async def _reply_to(self, question: Any) -> Reply:
        ask, clocks = self._around.ask, list(self._requests.clocks)
        if ask is None or not clocks:
            return Reply("decline")
        asking = asyncio.ensure_future(ask(question))
        self._asking.add(asking)
        for clock in clocks:
            clock.hold()
        try:
            await asyncio.wait({asking})
            return Reply("cancel") if asking.cancelled() else asking.result()
        finally:
            asking.cancel()
            self._asking.discard(asking)
            for clock in clocks:
                clock.go_on()

    def _take_questions_back(self) -> None:
        for asking in self._asking:
            asking.cancel()


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def _reason(error: BaseException) -> str:
    """The innermost of grouped errors in one line."""
    inner = _innermost(error)
    text = one_line(str(inner), 200)
    return text if text else type(inner).__name__
