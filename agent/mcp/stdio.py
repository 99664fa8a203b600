"""A transport to a program that speaks MCP on its standard input and output.

The library has one; this one differs in what a bad server can do: a line has a greatest length, what is not
JSON is logged and skipped, a flood of notifications ends the connection, and the process runs under
`guard.py`, so that nothing is left of it when we are killed. What it says on its standard error goes to a log
of limited size.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from agent.core.errors import AgentError
from agent.mcp.config import ServerSpec
from agent.mcp.log import ServerLog

LARGEST_MESSAGE_BYTES = 8 * 1024 * 1024
MOST_NOTIFICATIONS = 100_000
"""Between two answers; after that the connection is ended."""

_USED_NOTIFICATIONS = frozenset(
    {
        "notifications/progress",
        "notifications/cancelled",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/subscriptions/acknowledged",
    }
)
_MOST_USED = 2000
"""So many of them between two answers are looked at. Progress of a long call stays far below."""

MOST_BAD_LINES = 1000
_POLL_SECONDS = 0.02
_CLOSING_SECONDS = 2.5
"""The guard gives the server two seconds."""


class Ending:
    """Says when a connection is over, and why."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.reason = ""

    def note(self, reason: str) -> None:
        if not self.event.is_set():
            self.reason = reason
            self.event.set()


@asynccontextmanager
async def stdio_transport(
    spec: ServerSpec, *, folder: Path, environment: Mapping[str, str], log: ServerLog, ending: Ending
) -> AsyncIterator[tuple[Any, Any]]:
    """Starts the program of `spec` and yields the streams that `mcp.Client` takes.

    Args:
        spec: with variables replaced.
        folder: where it runs, unless `spec.cwd` says otherwise.
        environment: of the process, before `spec.env`.
        log: takes its standard error, and what it writes that is no message.
        ending: is told when the process, or the patience with it, is at its end.

    Raises:
        AgentError: it cannot be started.
    """
    import anyio

    process, lifeline = await _start(spec, folder, environment)
    to_session, from_server = anyio.create_memory_object_stream[Any](0)
    to_server, from_session = anyio.create_memory_object_stream[Any](0)
    tasks = [
        asyncio.create_task(_read(process, to_session, log, ending)),
        asyncio.create_task(_write(process, from_session)),
        asyncio.create_task(_log_errors(process, log)),
    ]
    try:
        yield from_server, to_server
    finally:
        ending.note("it was closed")
        with anyio.CancelScope(shield=True):
            await _end(process, lifeline)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_session, from_server, to_server, from_session):
                await stream.aclose()


async def _start(
    spec: ServerSpec, folder: Path, environment: Mapping[str, str]
) -> tuple[asyncio.subprocess.Process, int]:
    cwd = folder / Path(spec.cwd).expanduser() if spec.cwd else folder
    if not cwd.is_dir():
        raise AgentError(f"the folder {cwd} of the MCP server {spec.name} does not exist", "correct its cwd")
    command = Path(spec.command).expanduser() if spec.command.startswith("~") else spec.command
    reader, lifeline = os.pipe()
    guard = str(Path(__file__).with_name("guard.py"))
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", guard, str(reader), str(command), *spec.args),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env={**environment, **spec.env},
            pass_fds=(reader,),
            start_new_session=True,
            limit=256 * 1024,
        )
    except BaseException as error:
        os.close(lifeline)
        if isinstance(error, OSError | ValueError):
            reason = getattr(error, "strerror", None) or str(error)
            raise AgentError(f"the MCP server {spec.name} cannot be started: {reason}") from error
        raise
    finally:
        os.close(reader)
    return process, lifeline


async def _end(process: asyncio.subprocess.Process, lifeline: int) -> None:
    """Closes its input, which is how MCP says goodbye, and the lifeline, upon which the guard takes over."""
    if process.stdin is not None:
        process.stdin.close()
    await _exited(process, 0.3)
    os.close(lifeline)
    if not await _exited(process, _CLOSING_SECONDS):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, 9)
    transport = getattr(process, "_transport", None)
    if transport is not None:  # a helper that left the group may hold a pipe open, and we would wait for it
        transport.close()


async def _exited(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether the process has ended within `seconds`."""
    # `process.wait()` also waits for the pipes, which helpers of the server may hold.
    for _ in range(int(seconds / _POLL_SECONDS)):
        if process.returncode is not None:
            return True
        await asyncio.sleep(_POLL_SECONDS)
    return process.returncode is not None


async def _read(process: asyncio.subprocess.Process, to_session: Any, log: ServerLog, ending: Ending) -> None:
    """Passes messages on until the process or our patience ends."""
    import anyio

    reason = "its output ended"
    try:
        sieve = _Sieve(log)
        async for line in _lines(process.stdout):
            message = sieve.message(line)
            if sieve.complaint:
                reason = sieve.complaint
                break
            if message is not None:
                await to_session.send(message)
        else:
            if await _exited(process, 0.5):
                reason = f"it exited with status {process.returncode}"
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        reason = "it was closed"
    except _TooLongError:
        reason = f"it sent more than {LARGEST_MESSAGE_BYTES // 1024 // 1024} MB in one message"
    finally:
        ending.note(reason)
        await to_session.aclose()


class _TooLongError(Exception):
    pass


async def _lines(stream: asyncio.StreamReader | None) -> AsyncIterator[bytes]:
    pieces: list[bytes] = []
    size = 0
    while stream is not None and (chunk := await stream.read(256 * 1024)):
        await asyncio.sleep(0)  # others have their turn, however fast it writes
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            yield b"".join([*pieces, line])
            pieces, size = [], 0
        pieces.append(rest)
        size += len(rest)
        if size > LARGEST_MESSAGE_BYTES:
            raise _TooLongError


class _Sieve:
    """Lets messages through, and counts what is none. `complaint` says why to listen no longer."""

    def __init__(self, log: ServerLog) -> None:
        self._log = log
        self._bad = 0
        self._notifications = 0
        self.complaint = ""

    def message(self, line: bytes) -> Any:
        """A message as the session takes it, or None where the line is none."""
        if not line.strip():
            return None
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        try:
            record = json.loads(line)
            if self._is_to_be_dropped(record):
                return None
            message = jsonrpc_message_adapter.validate_python(record, by_name=False)
        except (ValueError, RecursionError):
            self._bad += 1
            self._log.write(b"(not a message) " + line[:2000] + b"\n")
            if self._bad > MOST_BAD_LINES:
                self.complaint = f"it wrote more than {MOST_BAD_LINES} lines that are no messages"
            return None
        return SessionMessage(message)

    def _is_to_be_dropped(self, record: Any) -> bool:
        """Whether nobody needs this message; it costs least here."""
        if not isinstance(record, dict) or "method" not in record:
            self._notifications = 0
            return False
        self._notifications += 1  # a flood of requests is no better
        if self._notifications > MOST_NOTIFICATIONS:
            self.complaint = f"it sent more than {MOST_NOTIFICATIONS} notifications without an answer"
        if "id" in record:
            return False
        return record["method"] not in _USED_NOTIFICATIONS or self._notifications > _MOST_USED


async def _write(process: asyncio.subprocess.Process, from_session: Any) -> None:
    import anyio

    with suppress(OSError, anyio.ClosedResourceError, anyio.EndOfStream):
        async for item in from_session:
            if process.stdin is None:
                return
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode("utf-8", "replace") + b"\n")
            await process.stdin.drain()


async def _log_errors(process: asyncio.subprocess.Process, log: ServerLog) -> None:
    while process.stderr is not None and (chunk := await process.stderr.read(64 * 1024)):
        log.write(chunk)
