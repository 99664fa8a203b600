"""Runs a shell command of the person's: a limit on its time, bounded output, and nothing of it is left."""

import asyncio
import errno
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from agent.core.confinement import Confinement, ConfinementError, Unconfined
from agent.core.lifeline import MARK, Lifeline

_DRAIN_SECONDS = 1.0
_CHUNK_BYTES = 65536


class Output:
    """A pipe of which the first and the last bytes are kept, and those in between are read and dropped.

    One that asyncio makes stays open for as long as any process holds it, also one that left the group.
    Has to be made in a running event loop, and closed.
    """

    def __init__(self, head_bytes: int, tail_bytes: int = 0) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._head_bytes, self._tail_bytes = head_bytes, tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._is_cut = False
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._read_end, self._read)

    @property
    def write_end(self) -> int:
        """The file descriptor for the process that writes."""
        return self._write_end

    def all_started(self) -> None:
        """Closes our own copy of the write end, so that the pipe ends with its last process."""
        if self._write_end >= 0:
            os.close(self._write_end)
            self._write_end = -1

    async def text(self) -> str:
        """All that was kept; a process that left the group and holds the pipe is not waited for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                await self._ended.wait()
        cut = b"\n[\xe2\x80\xa6]\n" if self._is_cut and self._tail_bytes else b""
        return bytes(self._head + cut + self._tail[-self._tail_bytes :]).decode("utf-8", "replace")

    def close(self) -> None:
        self.all_started()
        if self._read_end >= 0:
            self._loop.remove_reader(self._read_end)
            os.close(self._read_end)
            self._read_end = -1

    def _read(self) -> None:
        try:
            chunk = os.read(self._read_end, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._loop.remove_reader(self._read_end)
            self._ended.set()
            return
        room = self._head_bytes - len(self._head)
        self._head += chunk[:room]
        self._keep_last(chunk[room:])

    def _keep_last(self, chunk: bytes) -> None:
        if not self._tail_bytes:
            return
        self._tail += chunk
        surplus = len(self._tail) - self._tail_bytes
        self._is_cut = self._is_cut or surplus > 0
        if surplus > _CHUNK_BYTES:
            del self._tail[:surplus]


async def run_shell(
    command: str,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    *,
    out: Output,
    err: Output | None = None,
    stdin: IO[bytes] | None = None,
    confinement: Confinement | None = None,
) -> int | None:
    """Runs `command` in a shell, in a process group of its own, of which nothing is left afterwards.

    Args:
        err: where standard error goes; None for the same place as standard output.
        stdin: a file that is its standard input; None for an empty one.
        confinement: what keeps it in; None for nothing.

    Returns:
        The exit code, negative for a signal; None where it did not end within `seconds` and was ended.

    Raises:
        OSError: it cannot be started, as in a folder that is gone, or has to be confined and cannot be.
    """
    words = await _confined(command, confinement or Unconfined())
    mark = f"{os.getpid()}-{os.urandom(6).hex()}"
    lifeline = Lifeline(mark)
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=folder,
            env={**environment, MARK: mark},
            stdin=asyncio.subprocess.DEVNULL if stdin is None else stdin,
            stdout=out.write_end,
            stderr=(err or out).write_end,
            start_new_session=True,
        )
        lifeline.hold(process.pid)
        out.all_started()
        if err is not None:
            err.all_started()
        return await _ended(process, seconds)
    finally:
        lifeline.release()


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> int | None:
    try:
        async with asyncio.timeout(seconds):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        _kill_group(process.pid)
        await process.wait()


async def _confined(command: str, confinement: Confinement) -> Sequence[str]:
    try:
        return await confinement.confined(("/bin/sh", "-c", command))
    except ConfinementError as refused:
        raise OSError(errno.EPERM, str(refused)) from None


def exit_text(code: int) -> str:
    """How a process ended, for people."""
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
