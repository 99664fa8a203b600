"""Starts, waits for, reuses and stops the model server.

`Supervisor` is the one owner of a server's state while this process deals with it. The server itself
outlives the process; what is remembered about it is its record (`agent.server.record`).
"""

import asyncio
import secrets
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from agent.core.errors import AgentError, ServerError
from agent.server import probe
from agent.server import record as records
from agent.server.identity import collect, command_line, process_identity, send_signal
from agent.server.launch import EMBEDDED_COMMAND, LaunchPlan, spawn
from agent.server.locks import FileLock, released_at_end
from agent.server.logs import INSTALL_ENGINE, classify, last_line, read_tail, stage
from agent.server.loopback import free_port, is_free, status_of
from agent.server.record import Endpoint, Record, find_running

State = Literal["stopped", "starting", "ready", "stopping", "failed"]
StopOutcome = Literal["stopped", "was-not-running", "not-ours"]
Report = Callable[[State, float, str], None]
"""Called with the state, seconds since the start of the operation, and a detail for people."""

_POLL_SECONDS = 0.1
_PORT_ATTEMPTS = 3
_HEALTH_ATTEMPTS = 3
_DRAFT_PROBE_TOKENS = 16


def quiet(state: State, seconds: float, detail: str) -> None:
    """A report that nobody reads."""


async def ensure_running(plan: LaunchPlan, report: Report = quiet) -> Endpoint:
    """Gives a server that is ready for `plan`: the running one if it fits, otherwise a new one.

    Programs that ask at the same time share one server. A server of ours that does not fit is stopped
    first, unless it is at work.

    Raises:
        ServerError: it cannot be started, or another server of ours is busy.
        ModelFileError: the engine cannot read a model file.
    """
    return await Supervisor(plan, report).ensure()


class Supervisor:
    """Owns the state of one server from the first look until it is ready, failed or stopped."""

    def __init__(self, plan: LaunchPlan, report: Report = quiet) -> None:
        self.state: State = "stopped"
        self._plan = plan
        self._report = report
        self._begin = time.monotonic()

    async def ensure(self) -> Endpoint:
        """See `ensure_running`."""
        plan = self._plan
        self._begin = time.monotonic()
        endpoint = find_running(plan.fingerprint, plan.runtime_folder)
        if endpoint is not None:
            self._enter("ready", "reusing the running server")
            return endpoint
        try:
            for folder in (plan.runtime_folder, plan.log_folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return await self._ensure_alone()
        except OSError as error:
            self._enter("failed", str(error))
            raise ServerError(
                f"cannot start the server: {error}", f"check {plan.runtime_folder} and {plan.log_folder}"
            ) from error
        except AgentError as error:
            self._enter("failed", error.message)
            raise

    async def _ensure_alone(self) -> Endpoint:
        lock = FileLock(self._plan.runtime_folder / "server.lock")
        while not lock.try_acquire():
            self._enter("starting", "another program is starting or stopping a server")
            await asyncio.sleep(_POLL_SECONDS)
        with released_at_end(lock):
            endpoint = find_running(self._plan.fingerprint, self._plan.runtime_folder)
            if endpoint is not None:
                self._enter("ready", "reusing the running server")
                return endpoint
            for record in records.list_records(self._plan.runtime_folder):
                endpoint = await self._settle(record)
                if endpoint is not None:
                    return endpoint
            return await self._start()

    async def _settle(self, record: Record) -> Endpoint | None:
        """Adopts what another program left behind, or clears it away."""
        plan = self._plan
        if not record.is_running:
            records.remove_record(record, plan.runtime_folder)
            return None
        if record.fingerprint == plan.fingerprint:
            if record.state == "starting" and time.time() - record.started < plan.limit_seconds:
                endpoint = await self._adopt(record)
                if endpoint is not None:
                    return endpoint
            for _ in range(_HEALTH_ATTEMPTS):
                endpoint = find_running(plan.fingerprint, plan.runtime_folder)
                if endpoint is not None:
                    self._enter("ready", "reusing the running server")
                    return endpoint
                await asyncio.sleep(_POLL_SECONDS)
            reason = "a server that does not answer"
        else:
            reason = f"the server of profile {record.profile!r}, whose settings are different"
            if await asyncio.to_thread(probe.is_busy, record):
                raise ServerError(
                    f"a server with other settings (profile {record.profile!r}, process {record.pid}) "
                    "is answering a request",
                    "wait until it is done, or stop it with `agent server stop`",
                )
        self._enter("stopping", f"stopping {reason}")
        await stop_server(record, plan.runtime_folder, plan.stop_seconds)
        return None

    async def _adopt(self, record: Record) -> Endpoint | None:
        """Waits for a server whose starter died while it was loading; None when nothing comes of it."""
        self._enter("starting", "adopting a server that is still loading")
        try:
            return await self._wait_until_ready(record, started_here=False)
        except (AgentError, _PortTakenError) as error:
            self._enter("starting", f"the server that was loading failed: {error}")
            return None

    async def _start(self) -> Endpoint:
        plan = self._plan
        if plan.command == EMBEDDED_COMMAND:
            _require_engine()
        fixed = plan.profile.port
        if fixed and not is_free(fixed):
            raise ServerError(
                f"port {fixed}, which profile {plan.profile.name!r} asks for, is in use",
                "stop what uses it, or set port = 0 in the profile for a random one",
            )
        for attempt in range(_PORT_ATTEMPTS):
            try:
                return await self._start_on(fixed or free_port())
            except _PortTakenError as taken:
                if fixed or attempt + 1 == _PORT_ATTEMPTS:
                    raise taken.error from taken
        raise AssertionError("the loop above returns or raises")

    async def _start_on(self, port: int) -> Endpoint:
        plan = self._plan
        key_path = records.key_file(plan.runtime_folder, plan.fingerprint)
        records.write_private(key_path, secrets.token_urlsafe(32))
        pid = spawn(plan, port)
        record = Record(
            pid=pid,
            # A child that has already ended has no identity any more; the wait below finds that out.
            identity=process_identity(pid) or "ended",
            port=port,
            profile=plan.profile.name,
            fingerprint=plan.fingerprint,
            state="starting",
            key_file=str(key_path),
            spec_file=str(records.spec_file(plan.runtime_folder, plan.fingerprint)),
            log_file=str(plan.log_file),
            started=time.time(),
        )
        try:
            records.write_record(record, plan.runtime_folder)
            return await self._wait_until_ready(record, started_here=True)
        except BaseException:
            # Also when the wait is cancelled: a server that nobody waits for is not left loading.
            await asyncio.shield(stop_server(record, plan.runtime_folder, plan.stop_seconds))
            raise

    async def _wait_until_ready(self, record: Record, started_here: bool) -> Endpoint:
        plan = self._plan
        limit = plan.limit_seconds
        while True:
            self._raise_if_ended(record, started_here)
            status = await asyncio.to_thread(status_of, record.port, "/health")
            if status == 200:
                offer = await asyncio.to_thread(probe.offer_of, record.port, record.api_key)
                if offer is not None:
                    break
            if time.monotonic() - self._begin > limit:
                raise ServerError(
                    f"the server of profile {plan.profile.name!r} was not ready after {limit:.0f} s: "
                    f"{last_line(read_tail(plan.log_file)) or 'its log is empty'}",
                    f"look into {plan.log_file}, or allow more time with server.start_seconds",
                )
            self._enter("starting", stage(read_tail(plan.log_file)))
            await asyncio.sleep(_POLL_SECONDS)
        self._enter("starting", "warming up")
        await self._warm_up(record, started_here)
        record = record.ready(offer.context_tokens, offer.slots)
        records.write_record(record, plan.runtime_folder)
        self._enter("ready", f"context {offer.context_tokens} tokens")
        return record.endpoint()

    async def _warm_up(self, record: Record, started_here: bool) -> None:
        uses_draft = self._plan.profile.uses_draft_model
        tokens = _DRAFT_PROBE_TOKENS if uses_draft else 1
        try:
            drafted = await asyncio.to_thread(probe.warm_up, record.port, record.api_key, tokens)
        except OSError as error:
            await asyncio.sleep(_POLL_SECONDS)
            self._raise_if_ended(record, started_here)
            raise ServerError(
                f"the server of profile {record.profile!r} is up but does not answer: {error}",
                f"look into {record.log_file}",
            ) from error
        if uses_draft and not drafted:
            self._enter("starting", "the draft model is loaded but nothing is drafted with it")

    def _raise_if_ended(self, record: Record, started_here: bool) -> None:
        exit_status = collect(record.pid) if started_here else None
        if exit_status is None and record.is_running:
            return
        failure = classify(read_tail(Path(record.log_file)), exit_status)
        error = failure.as_error(record.profile, Path(record.log_file))
        if failure.kind == "port":
            raise _PortTakenError(error)
        raise error

    def _enter(self, state: State, detail: str) -> None:
        self.state = state
        self._report(state, time.monotonic() - self._begin, detail)


async def stop_server(record: Record, runtime_folder: Path, grace_seconds: float = 5.0) -> StopOutcome:
    """Stops a server of ours: asks it to end, and ends it after `grace_seconds`.

    A process that only happens to have the recorded number is left alone, and the record is forgotten.

    Raises:
        ServerError: the process does not go away.
    """
    if not record.is_running:
        collect(record.pid)
        records.remove_record(record, runtime_folder)
        return "was-not-running"
    if not await asyncio.to_thread(_is_ours, record):
        records.remove_record(record, runtime_folder)
        return "not-ours"
    for number in (signal.SIGTERM, signal.SIGKILL):
        send_signal(record.pid, number)
        if await _ended_within(record, grace_seconds):
            records.remove_record(record, runtime_folder)
            return "stopped"
    raise ServerError(
        f"the server of profile {record.profile!r} (process {record.pid}) does not end",
        "it may hang in the system; look at it with `ps`",
    )


def explain_end(record: Record) -> ServerError | None:
    """Why a server that was ready is no longer there; None while its process runs."""
    exit_status = collect(record.pid)
    if exit_status is None and record.is_running:
        return None
    failure = classify(read_tail(Path(record.log_file)), exit_status)
    quoted = f": {failure.line}" if failure.line else ""
    return ServerError(
        f"the server of profile {record.profile!r} is gone: {failure.summary}{quoted}",
        f"start again to get a new one (log: {record.log_file})",
    )


class _PortTakenError(Exception):
    """Somebody took the port between the choice and the use of it."""

    def __init__(self, error: AgentError) -> None:
        super().__init__(error.message)
        self.error = error


def _is_ours(record: Record) -> bool:
    # The command line names the spec file of this very server; the key is the second opinion.
    if record.spec_file in command_line(record.pid):
        return True
    return probe.key_is_accepted(record) is True


async def _ended_within(record: Record, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        collect(record.pid)
        if not record.is_running:
            return True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS / 2)


def _require_engine() -> None:
    import importlib.util

    if importlib.util.find_spec("xllamacpp") is None:
        raise ServerError("the embedded engine (xllamacpp) is not installed", INSTALL_ENGINE)
