"""Runs one hook: JSON on its standard input, a decision on its standard output, a limit on its time."""

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agent.core.outside_text import tidy
from agent.hooks.spec import HookSpec

MOST_OUTPUT_BYTES = 64 * 1024
MOST_FEEDBACK_CHARACTERS = 4000
BLOCKING_EXIT_CODE = 2
_DRAIN_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook decided. `problem` is a line for people where it failed, which never blocks anything."""

    blocked: bool = False
    feedback: str = ""
    problem: str = ""
    timed_out: bool = False


async def run_hook(
    spec: HookSpec, payload: Mapping[str, Any], folder: Path, environment: Mapping[str, str]
) -> HookAnswer:
    """Runs the command in a shell, in a process group of its own, of which nothing is left afterwards.

    Exit code 2 blocks, with standard error as feedback. Otherwise an exit code of 0 and a JSON object
    `{"decision": "allow" | "block", "feedback": "..."}` on standard output decide; other output is ignored.
    """
    with tempfile.TemporaryFile() as stdin:
        stdin.write(json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        stdin.seek(0)
        try:
            code, out, err = await _execute(spec, stdin, folder, environment)
        except OSError as error:
            return HookAnswer(problem=f"cannot be started: {error.strerror or error}")
    if code is None:
        return HookAnswer(problem=f"did not end within {spec.seconds:g} s and was ended", timed_out=True)
    return _answer(code, out, err)


async def _execute(
    spec: HookSpec, stdin: IO[bytes], folder: Path, environment: Mapping[str, str]
) -> tuple[int | None, str, str]:
    """Exit code (None after the time limit), standard output and standard error."""
    out = _Pipe()
    err = _Pipe()
    try:
        process = await asyncio.create_subprocess_shell(
            spec.command,
            cwd=folder,
            env=dict(environment),
            stdin=stdin,
            stdout=out.write_end,
            stderr=err.write_end,
            start_new_session=True,
        )
        out.all_started()
        err.all_started()
        code: int | None = None
        try:
            async with asyncio.timeout(spec.seconds):
                code = await process.wait()
        except TimeoutError:
            code = None
        finally:
            _kill_group(process.pid)
            await process.wait()
        return code, await out.text(), await err.text()
    finally:
        out.close()
        err.close()


class _Pipe:
    """A pipe whose first bytes are kept and whose others are read and dropped.

    One that asyncio makes stays open for as long as any process holds it, also one that left the group.
    """

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._content = bytearray()
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._read_end, self._read)

    @property
    def write_end(self) -> int:
        return self._write_end

    def all_started(self) -> None:
        """Closes our own copy of the write end, so that the pipe ends with its last process."""
        if self._write_end >= 0:
            os.close(self._write_end)
            self._write_end = -1

    async def text(self) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                await self._ended.wait()
        return self._content.decode("utf-8", "replace")

    def close(self) -> None:
        self.all_started()
        if self._read_end >= 0:
            self._loop.remove_reader(self._read_end)
            os.close(self._read_end)
            self._read_end = -1

    def _read(self) -> None:
        try:
            chunk = os.read(self._read_end, 65536)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._content += chunk[: MOST_OUTPUT_BYTES - len(self._content)]
        if not chunk:
            self._loop.remove_reader(self._read_end)
            self._ended.set()


def _answer(code: int, out: str, err: str) -> HookAnswer:
    if code == BLOCKING_EXIT_CODE:
        return HookAnswer(blocked=True, feedback=_feedback(err or out))
    if code != 0:
        how = f"exit code {code}" if code > 0 else f"killed by signal {-code}"
        last = (err.strip() or out.strip()).rpartition("\n")[2]
        return HookAnswer(problem=f"failed ({how})" + (f": {_feedback(last)[:200]}" if last else ""))
    text = out.strip()
    if not text.startswith("{"):
        return HookAnswer()
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return HookAnswer(problem="wrote JSON that cannot be read")
    if not isinstance(said, dict):
        return HookAnswer()
    decision, feedback = said.get("decision", "allow"), said.get("feedback", "")
    if decision not in ("allow", "block"):
        return HookAnswer(problem='its "decision" is neither "allow" nor "block"')
    if not isinstance(feedback, str):
        return HookAnswer(blocked=decision == "block", problem='its "feedback" is no text')
    return HookAnswer(blocked=decision == "block", feedback=_feedback(feedback))


def _feedback(text: str) -> str:
    plain = tidy(text).strip()
    if len(plain) <= MOST_FEEDBACK_CHARACTERS:
        return plain
    return f"{plain[:MOST_FEEDBACK_CHARACTERS]}\n[…]"


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
