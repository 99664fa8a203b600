"""Starts, waits for, reuses and stops the model server.

`Supervisor` is the one owner of a server's state while this process deals with it. The server itself
outlives the process; what is remembered about it is its record (`agent.server.record`).
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agent.core.errors import AgentError, ServerError
from agent.core.private_folder import make_private_folder
from agent.core.whole_file import write_whole
from agent.server import checkup, probe
from agent.server import record as records
from agent.server.command import Notice
from agent.server.first_reading import BatchTooLargeError, require_fitting_batch
from agent.server.identity import collect, collect_ended, process_identity, seconds_running
from agent.server.launch import EMBEDDED_COMMAND, LaunchPlan, command_of, spawn
from agent.server.locks import FileLock, released_at_end
from agent.server.logs import INSTALL_ENGINE, classify, last_line, read_tail, stage
from agent.server.loopback import free_port, is_free, status_of
from agent.server.probe import Offer
from agent.server.record import Endpoint, Record, find_running
from agent.server.stop import StopOutcome, explain_end, stop_server

if TYPE_CHECKING:
    from agent.server.room import Look

State = Literal["stopped", "waiting", "starting", "ready", "stopping", "failed", "warning"]
"""What a server is in. "warning" is none: it reports something that a person should know."""
Report = Callable[[State, float, str], None]
"""Called with the state, seconds since the start of the operation, and a detail for people."""

_Answer = TypeVar("_Answer")
_POLL_SECONDS = 0.1
_PORT_ATTEMPTS = 3
_HEALTH_ATTEMPTS = 3
_ABORT_LOOKS = 20


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
    """Owns the state of one server from the first look until it is ready, failed or stopped.

    `look` finds out how much memory is free, None = as it is on this machine.
    """

    def __init__(self, plan: LaunchPlan, report: Report = quiet, look: "Look | None" = None) -> None:
        self.state: State = "stopped"
        self._plan = plan
        self._look = look
        self._report = report
        self._begin = time.monotonic()

    async def ensure(self) -> Endpoint:
        """See `ensure_running`."""
        plan = self._plan
        self._begin = time.monotonic()
        endpoint = await self._found_running()
        if endpoint is not None:
            return endpoint
        try:
            for folder in (plan.runtime_folder, plan.log_folder):
                make_private_folder(folder)
            return await self._ensure_alone()
        except OSError as error:
            what = f" ({error.filename})" if error.filename else ""
            reason = f"{error.strerror or error}{what}"
            self._enter("failed", reason)
            raise ServerError(
                f"cannot start the server: {reason}", f"check {plan.runtime_folder} and {plan.log_folder}"
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
            endpoint = await self._found_running()
            if endpoint is not None:
                return endpoint
            for record in records.list_records(self._plan.runtime_folder):
                endpoint = await self._settle(record)
                if endpoint is not None:
                    return endpoint
            return await self._start()

    async def _found_running(self) -> Endpoint | None:
        """The server that fits, if it is healthy. One that hangs takes seconds to say nothing."""
        plan = self._plan
        endpoint = await asyncio.to_thread(find_running, plan.fingerprint, plan.runtime_folder)
        if endpoint is not None:
            self._enter("ready", "reusing the running server")
        return endpoint

    async def _settle(self, record: Record) -> Endpoint | None:
        """Adopts what another program left behind, or clears it away."""
        plan = self._plan
        if not record.is_running:
            records.remove_record(record, plan.runtime_folder)
            return None
        if record.fingerprint == plan.fingerprint:
            age = seconds_running(record.pid, record.started)
            if record.state == "starting" and age < plan.limit_seconds:
                endpoint = await self._adopt(record)
                if endpoint is not None:
                    return endpoint
            endpoint = await self._answering_again(record)
            if endpoint is not None:
                return endpoint
            reason = "a server that does not answer"
        else:
            reason = f"the server of profile {record.profile!r}, whose settings are different"
            if await self._stays_busy(record):
                raise ServerError(
                    f"a server with other settings (profile {record.profile!r}, process {record.pid}) "
                    "is answering a request",
                    f"wait until it is done, or stop it with `agent server stop --force {record.profile}`",
                )
        self._enter("stopping", f"stopping {reason}")
        await stop_server(record, plan.runtime_folder, plan.stop_seconds)
        return None

    async def _answering_again(self, record: Record) -> Endpoint | None:
        """The server that fits, once it is healthy; None for one that is not, or is dead.

        One that says nothing may be held up in the middle of somebody else's request.
        """
        deadline = time.monotonic() + self._plan.silent_seconds
        attempts = 0
        while record.is_running:
            endpoint = await self._found_running()
            if endpoint is not None:
                return endpoint
            attempts += 1
            if await asyncio.to_thread(lambda: record.is_silent):
                if time.monotonic() >= deadline:
                    return None
                self._enter("waiting", "waiting for the running server, which does not answer now")
            elif attempts >= _HEALTH_ATTEMPTS:
                return None
            await asyncio.sleep(_POLL_SECONDS)
        return None

    async def _stays_busy(self, record: Record) -> bool:
        """Whether it works for somebody. A request that was just given up ends with the batch it is in.

        One that answers nothing may be at work, too, until it has been silent for so long that it is dead.
        """
        begin = time.monotonic()
        whose = f"the server of profile {record.profile!r}"
        while True:
            is_busy = await asyncio.to_thread(probe.is_busy, record)
            if not is_busy and not await asyncio.to_thread(lambda: record.is_silent):
                return False
            if time.monotonic() - begin >= (
                self._plan.busy_seconds if is_busy else self._plan.silent_seconds
            ):
                return is_busy
            why = "is busy with another session" if is_busy else "does not answer now"
            self._enter("waiting", f"waiting for {whose}, which {why}")
            await asyncio.sleep(_POLL_SECONDS)

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
        if plan.is_embedded and plan.command == EMBEDDED_COMMAND:
            _require_engine()
        fixed = plan.profile.port
        if fixed and not is_free(fixed, plan.host):
            raise ServerError(
                f"port {fixed}, which profile {plan.profile.name!r} asks for, is in use",
                "stop what uses it, or set port = 0 in the profile for a random one; "
                f"to use the server that runs there, set server.url = http://{plan.host}:{fixed}",
            )
        if not plan.is_embedded:
            self._warn_before_start(command_of(plan, fixed or 1).warnings)
        await self._require_room()
        try:
            return await self._start_anywhere()
        except BatchTooLargeError as measured:
            self._plan = measured.plan
            self._enter("starting", str(measured))
            return await self._start_anywhere()

    async def _start_anywhere(self) -> Endpoint:
        plan, fixed = self._plan, self._plan.profile.port
        for attempt in range(_PORT_ATTEMPTS):
            try:
                return await self._start_on(fixed or free_port(plan.host))
            except _PortTakenError as taken:
                if fixed or attempt + 1 == _PORT_ATTEMPTS:
                    raise taken.error from taken
        raise AssertionError("the loop above returns or raises")

    async def _require_room(self) -> None:
        """Raises ServerError where the server cannot fit into memory, which it would tell after loading."""
        from agent.server.hardware import detect_hardware
        from agent.server.room import shortage

        # A driver gives the memory of a process back some time after its end.
        deadline = time.monotonic() + self._plan.busy_seconds
        while True:
            found = await asyncio.to_thread(shortage, self._plan, self._look or detect_hardware)
            if found is None:
                return
            if not found.is_certain:
                self._warn(found.message, found.hint)
                return
            if time.monotonic() >= deadline:
                raise ServerError(found.message, found.hint)
            self._enter("starting", "waiting for memory to be free")
            await asyncio.sleep(_POLL_SECONDS)

    async def _start_on(self, port: int) -> Endpoint:
        plan = self._plan
        write_whole(plan.own_key_file, secrets.token_urlsafe(32))
        pid = spawn(plan, port)
        capabilities = None if plan.is_embedded else plan.capabilities
        record = Record(
            pid=pid,
            # A child that has already ended has no identity any more; the wait below finds that out.
            identity=process_identity(pid) or "ended",
            port=port,
            profile=plan.profile.name,
            fingerprint=plan.fingerprint,
            state="starting",
            key_file=str(plan.key_file),
            spec_file=str(records.spec_file(plan.runtime_folder, plan.fingerprint)),
            log_file=str(plan.log_file),
            started=time.time(),
            host=plan.host,
            engine=plan.profile.engine,
            binary=capabilities.source if capabilities else "",
            version=capabilities.version if capabilities else _engine_version(),
            speculation=plan.profile.speculation.kind,
            degraded=plan.degraded,
            draft_limit=plan.draft_limit,
            batch_limit=plan.batch_limit,
        )
        try:
            records.write_record(record, plan.runtime_folder)
            return await self._wait_until_ready(record, started_here=True)
        except BaseException:
            # Also when the wait is cancelled: a server that nobody waits for is not left loading.
            await asyncio.shield(stop_server(record, plan.runtime_folder, plan.stop_seconds))
            raise

    async def _wait_until_ready(self, record: Record, started_here: bool) -> Endpoint:
        offer, props = await self._wait_for_health(record, started_here)
        self._enter("starting", "warming up")
        profile = self._plan.profile
        drafted = await self._asked(record, started_here, lambda: checkup.warm_up(profile, record))
        if started_here and self._plan.speeds_file is not None:
            self._enter("starting", "measuring how fast this machine reads")
            plan = self._plan
            await self._asked(record, started_here, lambda: require_fitting_batch(plan, record))
        result = await asyncio.to_thread(checkup.check, profile, record, props, drafted)
        for finding in result.findings:
            if finding.get("level") != "info":
                self._warn(finding["message"], finding.get("hint", ""))
        record = replace(
            record,
            state="ready",
            context_tokens=offer.context_tokens,
            slots=offer.slots,
            speculates=result.speculates,
            findings=result.findings,
            start_seconds=round(seconds_running(record.pid, record.started), 3),
        )
        records.write_record(record, self._plan.runtime_folder)
        self._enter("ready", f"context {offer.context_tokens} tokens")
        return record.endpoint()

    async def _wait_for_health(self, record: Record, started_here: bool) -> tuple[Offer, dict[str, Any]]:
        plan = self._plan
        begin = time.monotonic()
        while True:
            self._raise_if_ended(record, started_here)
            status = await asyncio.to_thread(status_of, record.port, "/health", host=record.host)
            if status == 200:
                props = await asyncio.to_thread(probe.props_of, record)
                checkup.require_own_model(props, plan.profile)
                offer = probe.offer_in(props)
                if offer is not None and props is not None:
                    return offer, props
            if time.monotonic() - begin > plan.limit_seconds:
                raise ServerError(
                    f"the server of profile {plan.profile.name!r} was not ready after "
                    f"{plan.limit_seconds:.0f} s: "
                    f"{last_line(read_tail(plan.log_file)) or 'its log is empty'}",
                    f"look into {plan.log_file}, or allow more time with server.start_seconds",
                )
            self._enter("starting", stage(read_tail(plan.log_file)))
            await asyncio.sleep(_POLL_SECONDS)

    async def _asked(self, record: Record, started_here: bool, question: Callable[[], _Answer]) -> _Answer:
        """What `question` finds out. Raises ServerError where the server goes away meanwhile."""
        try:
            return await asyncio.to_thread(question)
        except OSError as error:
            # A process that aborts closes its connections a while before it is gone.
            for _ in range(_ABORT_LOOKS):
                await asyncio.sleep(_POLL_SECONDS)
                self._raise_if_ended(record, started_here)
            raise ServerError(
                f"the server of profile {record.profile!r} is up but does not answer: {error}",
                f"look into {record.log_file}",
            ) from error

    def _raise_if_ended(self, record: Record, started_here: bool) -> None:
        exit_status = collect(record.pid) if started_here else None
        if exit_status is None and record.is_running:
            return
        if exit_status is None and started_here:
            exit_status = collect_ended(record.pid)
        failure = classify(read_tail(Path(record.log_file)), exit_status)
        error = failure.as_error(record.profile, Path(record.log_file))
        if failure.kind == "port":
            raise _PortTakenError(error)
        raise error

    def _warn_before_start(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            self._warn(notice.message, notice.hint)

    def _warn(self, message: str, hint: str) -> None:
        self._report("warning", time.monotonic() - self._begin, f"{message} ({hint})" if hint else message)

    def _enter(self, state: State, detail: str) -> None:
        self.state = state
        self._report(state, time.monotonic() - self._begin, detail)


class _PortTakenError(Exception):
    """Somebody took the port between the choice and the use of it."""

    def __init__(self, error: AgentError) -> None:
        super().__init__(error.message)
        self.error = error


def _require_engine() -> None:
    import importlib.util

    if importlib.util.find_spec("xllamacpp") is None:
        raise ServerError("the embedded engine (xllamacpp) is not installed", INSTALL_ENGINE)


def _engine_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"xllamacpp {version('xllamacpp')}"
    except PackageNotFoundError:
        return ""


__all__ = [
    "Report",
    "State",
    "StopOutcome",
    "Supervisor",
    "ensure_running",
    "explain_end",
    "quiet",
    "stop_server",
]
