"""Runs the check command of a task and words the outcome for the model."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from agent.core.events import CheckFinished
from agent.core.verifier import Verdict
from agent.verify.digest import digest

MAX_OUTPUT_BYTES = 256_000
# A check that takes longer than this is only run when the model says that it is done.
QUICK_SECONDS = 20.0
_DRAIN_SECONDS = 1.0
_NOT_FOUND = 127


class CheckCommand:
    """A shell command that passes when it exits with 0. A `core.verifier.Verifier`."""

    def __init__(
        self,
        command: str,
        folder: Path,
        *,
        environment: Mapping[str, str],
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.command = command
        self._folder = folder
        self._environment = dict(environment)
        self._timeout = timeout_seconds
        self._clock = clock
        self._last_seconds = 0.0

    async def after_change(self) -> Verdict | None:
        """Runs a quick check after each change, so that the model sees what still fails."""
        if self._last_seconds > QUICK_SECONDS:
            return None
        return await self.run()

    async def at_finish(self) -> Verdict | None:
        return await self.run()

    async def run(self) -> Verdict:
        started = self._clock()
        code, output = await self._execute()
        self._last_seconds = self._clock() - started
        passed = code == 0
        text = "" if passed else digest(output)
        event = CheckFinished(
            command=self.command, passed=passed, text=text, seconds=round(self._last_seconds, 3)
        )
        return Verdict(passed, self._feedback(code, text), event, _cannot_start(code, text))

    def _feedback(self, code: int | None, text: str) -> str:
        if code == 0:
            return f"The check `{self.command}` passes now."
        said = f":\n{text}" if text else " without any output."
        if code is None:
            return f"The check `{self.command}` did not end within {self._timeout:g} s{said}"
        return f"The check `{self.command}` fails ({_exit_text(code)}){said}"

    async def _execute(self) -> tuple[int | None, str]:
        """Exit code (`None` after the time limit) and output.

        No process of the check's group survives, and none that left it is waited for.
        """
        async with _collected_output() as (write_end, output):
            process = await asyncio.create_subprocess_shell(
                self.command,
                cwd=self._folder,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                start_new_session=True,
            )
            output.all_started()
            code: int | None = None
            try:
                async with asyncio.timeout(self._timeout):
                    code = await process.wait()
            except TimeoutError:
                code = None
            finally:
                _kill_group(process.pid)
                await process.wait()
            return code, await output.text()


class _Output:
    """What comes out of the read end of a pipe, of which the first and the last part are kept."""

    def __init__(self, stream: asyncio.StreamReader, write_end: int) -> None:
        self._write_end: int | None = write_end
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0
        self._reading = asyncio.ensure_future(self._read(stream))

    def all_started(self) -> None:
        """Closes our own copy of the write end, so that the pipe ends with its last process."""
        if self._write_end is not None:
            os.close(self._write_end)
            self._write_end = None

    async def close(self) -> None:
        self.all_started()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def text(self) -> str:
        """All that came; a process that left the group and holds the pipe is not waited for long."""
        await asyncio.wait({self._reading}, timeout=_DRAIN_SECONDS)
        cut = b"\n[\xe2\x80\xa6]\n" if self._left_out else b""
        return bytes(self._head + cut + self._tail).decode("utf-8", errors="replace")

    async def _read(self, stream: asyncio.StreamReader) -> None:
        half = MAX_OUTPUT_BYTES // 2
        while chunk := await stream.read(65536):
            room = half - len(self._head)
            self._head += chunk[:room]
            self._tail += chunk[room:]
            if len(self._tail) > half + 65536:
                self._left_out += len(self._tail) - half
                del self._tail[:-half]


@contextlib.asynccontextmanager
async def _collected_output() -> AsyncIterator[tuple[int, _Output]]:
    """A pipe of our own: one made by asyncio stays open for as long as any process holds it."""
    read_end, write_end = os.pipe()
    stream = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(read_end, "rb", buffering=0)
    )
    output = _Output(stream, write_end)
    try:
        yield write_end, output
    finally:
        await output.close()
        transport.close()


def _exit_text(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _cannot_start(code: int | None, text: str) -> str:
    """The shell's words about a command that it did not find; 127 alone may come from the command itself."""
    if code != _NOT_FOUND:
        return ""
    return next((line.strip() for line in text.splitlines() if "not found" in line), "")
