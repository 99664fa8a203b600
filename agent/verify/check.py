"""Runs the check command of a task and words the outcome for the model."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.core.events import CheckFinished
from agent.core.verifier import Verdict
from agent.verify.digest import digest

MAX_OUTPUT_BYTES = 1_000_000
# A check that takes longer than this is only run when the model says that it is done.
QUICK_SECONDS = 20.0
_KILL_AFTER_SECONDS = 2.0


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
        return Verdict(passed, self._feedback(code, text), event)

    def _feedback(self, code: int | None, text: str) -> str:
        if code == 0:
            return f"The check `{self.command}` passes now."
        if code is None:
            return f"The check `{self.command}` did not end within {self._timeout:g} s:\n{text}"
        return f"The check `{self.command}` fails:\n{text}"

    async def _execute(self) -> tuple[int | None, str]:
        """Exit code (`None` after the time limit) and output. No process of the check survives."""
        process = await asyncio.create_subprocess_shell(
            self.command,
            cwd=self._folder,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        reader = asyncio.ensure_future(_read_bounded(process.stdout))
        try:
            async with asyncio.timeout(self._timeout):
                code: int | None = await process.wait()
        except TimeoutError:
            code = None
        finally:
            _kill_group(process.pid)
            await asyncio.wait({reader}, timeout=_KILL_AFTER_SECONDS)
            reader.cancel()
        output = reader.result() if reader.done() and not reader.cancelled() else b""
        return code, output.decode("utf-8", errors="replace")


async def _read_bounded(stream: asyncio.StreamReader | None) -> bytes:
    """Reads to the end, keeping the first and the last half of `MAX_OUTPUT_BYTES`."""
    if stream is None:
        return b""
    head, tail = bytearray(), bytearray()
    half = MAX_OUTPUT_BYTES // 2
    while chunk := await stream.read(65536):
        room = half - len(head)
        head += chunk[:room]
        tail += chunk[room:] if room < len(chunk) else b""
        if len(tail) > 2 * half:
            del tail[:-half]
    return bytes(head + tail[-half:])


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
