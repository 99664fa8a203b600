"""A server of ours that dies in the middle of a turn: it is started again, and the turn goes on.

The model client calls a `Rescuer` when a request failed. The first crash brings the same server back, a
second one brings it back without its draft model, which is what most often makes a server crash. After that
the turn ends, with the reason that the server's log gives. One that hangs and answers nobody is ended first.
"""

import asyncio
from collections.abc import Callable
from typing import Literal

from agent.app.background import in_background
from agent.app.servers.serving import Serving
from agent.core.errors import AgentError, ServerError
from agent.core.events import Event, Notice
from agent.llm.client import Rescue
from agent.llm.failures import Failure
from agent.resources import runtime_folder
from agent.server.record import Endpoint, read_record, record_file

_LOOKS = 20
_LOOK_AGAIN_SECONDS = 0.1
_SUSPICIOUS = ("dropped", "unreachable")
_Found = Literal["alive", "replaced", "stopped", "crashed"]


class Rescuer:
    """Knows the server that answers now: `serving` and `endpoint` change with each rescue.

    `failure` is why the last server ended, or did not come back. `arrived` is called with each new server.
    """

    def __init__(
        self,
        serving: Serving,
        endpoint: Endpoint,
        *,
        emit: Callable[[Event], None],
        arrived: Callable[[Serving, Endpoint], None] | None = None,
    ) -> None:
        self.serving = serving
        self.endpoint = endpoint
        self.failure: AgentError | None = None
        self._emit = emit
        self.arrived = arrived
        self._crashes = 0
        self._given_up: int | None = None
        self._stopped_in_reply = False

    def begin_turn(self) -> None:
        """Forgets the crashes of earlier turns. A draft that was left out stays so."""
        self._crashes = 0
        self._given_up = None
        self._stopped_in_reply = False

    async def __call__(self, failed: Failure) -> Rescue | None:
        """A server to send the same request to, or None: nothing is known to be wrong with the present one.

        Started servers are told about as events; it may take as long as loading a model takes.
        """
        if self.endpoint.fingerprint is None or self._stopped_in_reply:
            return None
        found, cause = await self._look(_LOOKS if failed.kind in _SUSPICIOUS else 1)
        if found == "alive" and failed.kind == "silent":
            return await self._after_silence(failed.text)
        if found == "alive":
            return await self._without_draft(failed.text) if _never_works(failed) else None
        if found == "stopped" and failed.kind == "dropped":
            # Somebody wanted it to end while it answered: that is not undone.
            self._stopped_in_reply = True
            self.failure = ServerError("the server was stopped", "start again to get a new one")
            return None
        if found == "crashed":
            if self._given_up == self.endpoint.pid:
                return None  # the client asks again with each of its tries
            self._given_up = self.endpoint.pid
            self._crashes += 1
            self.failure = cause
            return await self._after_crash(cause.message if cause else "the server is gone")
        what = "another program started the server again" if found == "replaced" else "the server was stopped"
        return await self._resume(self.serving, what, "the server was started again")

    async def _after_crash(self, cause: str) -> Rescue | None:
        if self._crashes == 1:
            again = "it is started again"
            rescue = await self._resume(self.serving, f"{cause}; {again}", "the server was started again")
            if rescue is not None:
                return rescue
        plain = self.serving.without_draft()
        if plain is None or self._crashes > 2:
            return None
        return await self._resume(
            plain,
            f"{cause}; it is started without its draft model",
            "the server was started again without its draft model",
        )

    async def _after_silence(self, failure: str) -> Rescue | None:
        """In place of a server that hangs. One that answers again by now is asked again."""
        from agent.server.stop import stop_server

        record = self.serving.record_of(self.endpoint)
        self._crashes += 1
        if record is None or self._crashes > 2:
            return None
        if await in_background(lambda: record.is_healthy):
            return _rescue_by(self.endpoint, "the server answers again")
        try:
            await stop_server(record, runtime_folder())
        except AgentError as error:
            self.failure = error
            return None
        return await self._after_crash(failure)

    async def _without_draft(self, failure: str) -> Rescue | None:
        """The same server without the draft; None where there is none, or somebody else is being served."""
        from agent.server.probe import is_busy
        from agent.server.stop import stop_server

        plain, record = self.serving.without_draft(), self.serving.record_of(self.endpoint)
        if plain is None or record is None or await in_background(lambda: is_busy(record)):
            return None
        try:
            await stop_server(record, runtime_folder())
        except AgentError:
            return None
        return await self._resume(
            plain,
            f"{failure}; it is started without its draft model",
            "the server was started again without its draft model",
        )

    async def _resume(self, serving: Serving, before: str, after: str) -> Rescue | None:
        self._emit(Notice(text=before, level="warning"))
        try:
            endpoint = await serving.endpoint(self._emit)
        except AgentError as error:
            self.failure = error
            return None
        self.serving, self.endpoint, self.failure = serving, endpoint, None
        if self.arrived is not None:
            self.arrived(serving, endpoint)
        return _rescue_by(endpoint, after)

    async def _look(self, looks: int) -> tuple[_Found, ServerError | None]:
        """What became of the server. A process that dies closes its connections before it is gone."""
        for look in range(looks):
            found, cause = await in_background(self._state)
            if found != "alive":
                return found, cause
            if look + 1 < looks:
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        return "alive", None

    def _state(self) -> tuple[_Found, ServerError | None]:
        from agent.server.stop import explain_end

        record = read_record(record_file(runtime_folder(), self.endpoint.fingerprint or ""))
        if record is None or record.state == "stopping":
            return "stopped", None
        if record.pid != self.endpoint.pid:
            return "replaced", None
        cause = explain_end(record)
        return ("crashed", cause) if cause else ("alive", None)


def _rescue_by(endpoint: Endpoint, cause: str) -> Rescue:
    return Rescue(
        base_url=endpoint.base_url,
        api_key=endpoint.api_key,
        context_tokens=endpoint.context_tokens,
        cause=cause,
    )


def _never_works(failed: Failure) -> bool:
    """Whether the server itself failed at a request, and did so again when it was repeated and read anew."""
    return failed.kind == "server" and failed.is_lasting
