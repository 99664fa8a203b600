"""The MCP servers of one session: connected when they are first needed, restarted once, ended with it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agent.core.errors import AgentError
from agent.mcp.config import ServerSpec
from agent.mcp.connection import Connection, ServerGoneError, Surroundings
from agent.mcp.known import KnownServers
from agent.mcp.listing import Offer, RemoteTool
from agent.mcp.log import log_of
from agent.mcp.requests import Progress

MOST_RESTARTS = 1

PlaceState = Literal["off", "not started", "starting", "running", "ended", "failed"]


@dataclass(slots=True)
class _Place:
    """What the pool holds of one server."""

    spec: ServerSpec
    connection: Connection | None = None
    opening: "asyncio.Task[Connection] | None" = None
    starts: int = 0
    failure: AgentError | None = None
    is_off: bool = False
    reported: set[str] = field(default_factory=set)


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
        offer = self.offer(name)
        return None if offer is None else offer.tools

    def offer(self, name: str) -> Offer | None:
        """Tools, prompts and resources as they were listed last; None where that never happened."""
        place = self._places[name]
        if place.connection is not None:
            return place.connection.offer
        return self._known.offer(place.spec)

    def has_changed(self, name: str) -> bool:
        """Whether the server has said that it offers something else now; `list_tools` looks."""
        connection = self._places[name].connection
        return connection is not None and connection.is_alive and connection.list_changed

    def is_running(self, name: str) -> bool:
        """Whether there is a connection at this moment."""
        connection = self._places[name].connection
        return connection is not None and connection.is_alive

    def is_off(self, name: str) -> bool:
        """Whether a person switched it off for this session."""
        place = self._places.get(name)
        return place is not None and place.is_off

    def state(self, name: str) -> PlaceState:
        """What becomes of the server at this moment. It starts when the model first needs it."""
        place = self._places[name]
        if place.is_off:
            return "off"
        if place.opening is not None:
            return "starting"
        if self.is_running(name):
            return "running"
        if place.connection is not None:
            return "ended"
        return "failed" if place.failure is not None else "not started"

    def why(self, name: str) -> str:
        """Why it is not there, if it failed or ended; empty otherwise."""
        place = self._places[name]
        if place.connection is not None and not place.connection.is_alive:
            return place.connection.ending.reason
        return place.failure.message if place.failure is not None and place.connection is None else ""

    async def switch_off(self, name: str) -> None:
        """Ends the server, and lets nobody start it until it is switched on. What it offers stays."""
        place = self._places[name]
        place.is_off = True
        await self._let_go(place)

    def switch_on(self, name: str) -> None:
        """Lets the server be started again, as if it never had been."""
        place = self._places[name]
        place.is_off, place.starts, place.failure = False, 0, None

    async def reconnect(self, name: str) -> None:
        """Ends the server and starts it anew, also one that was given up.

        Raises:
            AgentError: it cannot be started.
        """
        await self._let_go(self._places[name])
        self.switch_on(name)
        await self._connected(name)

    async def _let_go(self, place: _Place) -> None:
        opening, connection = place.opening, place.connection
        if opening is not None:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
        place.connection = None
        if connection is not None:
            await connection.close()

    def about(self, name: str) -> str:
        """How the server calls itself, once it is connected."""
        connection = self._places[name].connection
        return connection.about if connection is not None else ""

    async def list_tools(self, names: Iterable[str], *, anew: bool = False) -> Listing:
        """Connects to all the named servers at the same time, and gives what each offers.

        Args:
            anew: asks also those that have not said that their list has changed.
        """
        wanted = list(names)
        outcomes = await asyncio.gather(
            *(self._listed(name, anew) for name in wanted), return_exceptions=True
        )
        tools: dict[str, list[RemoteTool]] = {}
        failures: dict[str, AgentError] = {}
        for name, outcome in zip(wanted, outcomes, strict=True):
            if isinstance(outcome, Connection):
                tools[name] = outcome.offer.tools
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
        try:
            return await self._asked(name, lambda connection: connection.call(tool, arguments, progress))
        except ServerGoneError as error:
            text = f"{error.message}. Whether the call had an effect is not known."
            raise AgentError(text, error.hint) from error

    async def get_prompt(self, name: str, prompt: str, arguments: Mapping[str, str]) -> Any:
        """The server's `GetPromptResult`. Raises AgentError."""
        return await self._asked(name, lambda connection: connection.get_prompt(prompt, arguments))

    async def read_resource(self, name: str, uri: str) -> Any:
        """The server's `ReadResourceResult`. Raises AgentError."""
        return await self._asked(name, lambda connection: connection.read_resource(uri))

    async def _asked(self, name: str, request: Callable[[Connection], Awaitable[Any]]) -> Any:
        return await request(await self._connected(name))

    async def _listed(self, name: str, anew: bool) -> Connection:
        was_running = self.is_running(name)
        connection = await self._connected(name)
        if connection.list_changed or (anew and was_running):
            await connection.list_again()
            await self._remember(self._places[name].spec, connection)
        return connection

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
        if place.is_off:
            raise AgentError(f"the user has switched off the MCP server {name}")
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
        offer = connection.offer
        place = self._places[spec.name]
        for problem in offer.problems:
            if problem not in place.reported:
                place.reported.add(problem)
                self._report(f"the MCP server {spec.name}: {problem}")
        known = await asyncio.to_thread(self._known.offer, spec)
        if known is None or replace(known, problems=offer.problems) != offer:
            await asyncio.to_thread(self._known.remember, spec, offer.tools, offer.prompts, offer.resources)
