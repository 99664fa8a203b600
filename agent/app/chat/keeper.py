"""Keeps the engine of a live session: started in the background, asked for by turns, changed by a person."""

import asyncio
from collections.abc import Awaitable, Callable

from agent.app.background import in_background
from agent.app.chat.engine import Engine
from agent.app.servers.serving import Serving
from agent.core.errors import PLEASE_REPORT, AgentError, ServerError, unexpected
from agent.core.events import Event, Notice, ServerState


def is_gone(engine: Engine) -> bool:
    """Whether a server of ours was stopped since, by somebody or by a crash. Asks the server nothing."""
    if engine.endpoint.fingerprint is None:
        return False
    record = engine.serving.record_of(engine.endpoint)
    return record is None or not record.is_running


OpenEngine = Callable[[Serving], Awaitable[Engine]]


class EngineKeeper:
    """Owns the one engine of a session. `arrived` is called with each engine that comes up."""

    def __init__(
        self,
        serving: Serving,
        open_engine: OpenEngine,
        *,
        emit: Callable[[Event], None],
        arrived: Callable[[Engine], None],
    ) -> None:
        self.serving = serving
        self.engine: Engine | None = None
        self._open = open_engine
        self._emit = emit
        self._arrived = arrived
        self._starting: asyncio.Task[Engine | AgentError] | None = None
        self._waiting = 0

    def start(self) -> None:
        """Begins to come to a server, unless one is there or on its way."""
        if self.engine is None and (self._starting is None or self._starting.done()):
            self._starting = asyncio.create_task(self._start())

    async def ready(self) -> Engine:
        """The engine, as soon as it is there. Whoever waits may be cancelled, the start goes on.

        Raises ServerError, ModelFileError or UsageError.
        """
        engine = self.engine
        if engine is not None:
            if not await in_background(lambda: is_gone(engine)):
                return engine
            self._emit(Notice(text="the server was stopped from outside; it is started again"))
            await self._let_go()
        self.start()
        if self._starting is None:
            raise ServerError("the server was not started")
        self._waiting += 1
        try:
            outcome = await asyncio.shield(self._starting)
        finally:
            self._waiting -= 1
        if isinstance(outcome, AgentError):
            raise outcome
        return outcome

    async def change(self, serving: Serving) -> Engine:
        """Goes over to another profile; its server may take the place of the present one.

        Raises what `ready` does; the present profile is kept then.
        """
        before = self.serving
        await self._let_go()
        self.serving = serving
        try:
            return await self.ready()
        except AgentError:
            self.serving = before
            raise

    async def forget(self) -> None:
        """Lets go of a server that failed, so that the next turn comes to one anew."""
        await self._let_go()

    async def close(self) -> str:
        """Ends a start that is under way, and what is not to be kept for another run.

        Returns:
            One line if the server could not be stopped.
        """
        engine = self.engine
        await self._let_go()
        return await engine.serving.release(engine.endpoint) if engine is not None else ""

    async def _let_go(self) -> None:
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        self._starting = None
        engine, self.engine = self.engine, None
        if engine is not None:
            # A connection that cannot be closed in order is no reason to keep the session from going on.
            await asyncio.gather(engine.close(), return_exceptions=True)

    async def _start(self) -> Engine | AgentError:
        try:
            engine = await self._open(self.serving)
        except AgentError as error:
            return self._failed(error)
        except Exception as error:
            return self._failed(ServerError(unexpected(error, "the server was started"), PLEASE_REPORT))
        self.engine = engine
        self._arrived(engine)
        return engine

    def _failed(self, error: AgentError) -> AgentError:
        self._emit(ServerState(state="failed", detail=error.message))
        if not self._waiting:  # who waits is told by whoever asked
            self._emit(Notice(text=str(error), level="error"))
        return error
