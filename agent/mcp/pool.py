"""The MCP servers of one session: connected when they are first needed, restarted once, ended with it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.core.errors import AgentError
from agent.mcp.config import ServerSpec
from agent.mcp.connection import Connection, Progress, RemoteTool, ServerGoneError, Surroundings
from agent.mcp.known import KnownServers
from agent.mcp.log import log_of

MOST_RESTARTS = 1


@dataclass(slots=True)
class _Place:
    """What the pool holds of one server."""

    spec: ServerSpec
    connection: Connection | None = None
    opening: "asyncio.Task[Connection] | None" = None
    starts: int = 0
    failure: AgentError | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What asking several servers for their tools gave."""

    tools: Mapping[str, list[RemoteTool]] = field(default_factory=dict)
    failures: Mapping[str, AgentError] = field(default_factory=dict)


class Pool:
    """Owns the connections. Nothing is started before `tools` or `call`."""

    def __init__(
        self,
        specs: Iterable[ServerSpec],
        around: Surroundings,
        *,
        state: Path,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`state` is the state folder, for logs and what is remembered; `report` takes lines for people."""
        self._places = {spec.name: _Place(spec) for spec in specs if spec.enabled}
        self._around = around
        self._state = state
        self._report = report
        self._known = KnownServers.of(state)
        self._closed = False

    @property
    def specs(self) -> list[ServerSpec]:
        """The servers that are switched on, in the order of their names."""
        return sorted((place.spec for place in self._places.values()), key=lambda spec: spec.name)

    def remembered(self, name: str) -> list[RemoteTool] | None:
        """The tools as they were listed last, in this session or before; None where that never happened."""
        place = self._places[name]
        if place.connection is not None:
            return place.connection.tools
        return self._known.tools(place.spec)

    def is_running(self, name: str) -> bool:
        """Whether there is a connection at this moment."""
        connection = self._places[name].connection
        return connection is not None and connection.is_alive

    def about(self, name: str) -> str:
        """How the server calls itself, once it is connected."""
        connection = self._places[name].connection
        return connection.about if connection is not None else ""

    async def list_tools(self, names: Iterable[str]) -> Listing:
        """Connects to all the named servers at the same time, and gives what each offers."""
        wanted = list(names)
        outcomes = await asyncio.gather(*(self._connected(name) for name in wanted), return_exceptions=True)
        tools: dict[str, list[RemoteTool]] = {}
        failures: dict[str, AgentError] = {}
        for name, outcome in zip(wanted, outcomes, strict=True):
            if isinstance(outcome, Connection):
                tools[name] = outcome.tools
            elif isinstance(outcome, AgentError):
                failures[name] = outcome
            else:
                raise outcome
        return Listing(tools, failures)

    async def call(self, name: str, tool: str, arguments: Mapping[str, Any], progress: Progress) -> Any:
        """Calls a tool and gives the server's `CallToolResult`. A call is never made twice.

        Raises:
            AgentError: the server cannot be started, is gone, refuses, or takes too long.
        """
        connection = await self._connected(name)
        try:
            return await connection.call(tool, arguments, progress)
        except ServerGoneError as error:
            text = f"{error.message}. Whether the call had an effect is not known."
            raise AgentError(text, error.hint) from error

    async def close(self) -> None:
        """Ends all servers, at the same time. They are gone when this returns."""
        self._closed = True
        opening = [place.opening for place in self._places.values() if place.opening is not None]
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        connections = [place.connection for place in self._places.values() if place.connection is not None]
        await asyncio.gather(*(connection.close() for connection in connections), return_exceptions=True)

    async def _connected(self, name: str) -> Connection:
        """A living connection. Whoever waits may be cancelled, the start goes on for the others."""
        place = self._places[name]
        if place.connection is not None and place.connection.is_alive:
            return place.connection
        if self._closed:
            raise AgentError(f"the MCP server {name} is not started any more, the session ends")
        if place.opening is None:
            place.opening = asyncio.create_task(self._open(place))
            place.opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(place.opening)

    async def _open(self, place: _Place) -> Connection:
        name = place.spec.name
        try:
            before = place.connection
            if before is not None:
                await before.close()
            if place.starts > MOST_RESTARTS:
                reason = place.failure.message if place.failure else before.ending.reason if before else ""
                raise AgentError(
                    f"the MCP server {name} is not started a third time in this session: {reason}",
                    f"`agent mcp test {name}` tries it alone",
                )
            if before is not None:
                self._report(f"the MCP server {name} ended ({before.ending.reason}); it is started again")
            place.starts += 1
            connection = Connection(place.spec, self._around, log_of(self._state, name))
            try:
                await connection.open()
            except AgentError as error:
                place.failure = error
                raise
            place.connection = connection
            await self._remember(place.spec, connection)
            return connection
        finally:
            place.opening = None

    async def _remember(self, spec: ServerSpec, connection: Connection) -> None:
        for problem in connection.problems:
            self._report(f"the MCP server {spec.name}: {problem}")
        if await asyncio.to_thread(self._known.tools, spec) != connection.tools:
            await asyncio.to_thread(self._known.remember, spec, connection.tools)
