"""Reading the output of a helper program line by line, no further than needed."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LONGEST_LINE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class HelperOutcome:
    """`returncode` is `None` if the program was stopped, by `on_line` or because time was up."""

    returncode: int | None
    errors: str
    timed_out: bool = False


async def read_lines(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    on_line: Callable[[bytes], bool],
    given: bytes = b"",
) -> HelperOutcome:
    """Runs a program and hands over its output lines until `on_line` returns false.

    Args:
        given: standard input of the program, which has to read all of it before it prints.

    Raises:
        OSError: the program cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *arguments,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.PIPE if given else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LONGEST_LINE_BYTES,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            if not await _hand_over(process, on_line, given):
                return HelperOutcome(None, "")
            _, errors = await process.communicate()
            return HelperOutcome(process.returncode, errors.decode("utf-8", "replace"))
    except TimeoutError:
        return HelperOutcome(None, "", timed_out=True)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()


async def _hand_over(
    process: asyncio.subprocess.Process, on_line: Callable[[bytes], bool], given: bytes
) -> bool:
    if process.stdin:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(given)
            await process.stdin.drain()
            process.stdin.close()
    output = process.stdout
    while output and (line := await output.readline()):
        if not on_line(line.rstrip(b"\n")):
            return False
    return True
