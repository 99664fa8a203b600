"""Running one shell command to the end of the shell, of the time, or of the person's patience."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.lifeline import MARK, Lifeline
from tools._process.environment import quiet_environment, telling_folder
from tools._process.group import end_group, is_alive
from tools._process.pipe import PipeReader

_LOOK_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.04)
_AFTER_EXIT_SECONDS = 0.5
"""Time for a process substitution such as `>(tee log)` to print what it still holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run and where; `mark` is put on all processes of it, see `environment.MARK`."""

    arguments: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    mark: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended. `leader` is its process id and the id of its process group.

    `folder` is where its shell was in the end, None if it did not tell. `lifeline` is that of what goes on in
    the background, to be released when that has ended.
    """

    returncode: int
    timed_out: bool
    background: bool
    leader: int
    folder: Path | None = None
    lifeline: Lifeline | None = None


class NotStartedError(Exception):
    """The operating system refused; `cause` says why."""

    def __init__(self, cause: OSError | ValueError) -> None:
        super().__init__(str(cause))
        self.cause = cause


async def run_command(command: Command, seconds: float, on_output: Callable[[bytes], None]) -> Outcome:
    """Runs a program in a session of its own, without a terminal or input to wait for.

    Returns when the program itself has ended, even if something that it started still holds its
    output open. After `seconds`, or when cancelled, all that it started is ended.

    Args:
        on_output: gets standard output and standard error in the order they were written.

    Raises:
        NotStartedError: there is no such program or folder, or the arguments are impossible.
    """
    told, telling = os.pipe()
    lifeline = Lifeline(command.mark)
    try:
        process, reading = await _started(command, telling)
    except BaseException:
        os.close(told)
        lifeline.release()
        raise
    finally:
        os.close(telling)
    lifeline.hold(process.pid)
    reader = PipeReader(reading, asyncio.get_running_loop(), on_output)
    ended = background = False
    try:
        ended = await _ends_within(process, seconds)
        if ended:
            await _read_rest(reader)
            background = not reader.ended.is_set() or await _goes_on(process.pid)
        else:
            await end_group(process, command.mark)
            reader.drain()
    except asyncio.CancelledError:
        await end_group(process, command.mark)
        raise
    finally:
        reader.close(keep_open=background)
        folder = _told_folder(told)
        if not background:
            lifeline.release()
    kept = lifeline if background else None
    return Outcome(process.returncode or 0, not ended, background, process.pid, folder, kept)


async def _started(command: Command, telling: int) -> tuple[asyncio.subprocess.Process, int]:
    """The process, and the reading end of its output."""
    reading, writing = os.pipe()
    environment = {**quiet_environment(command.environment), MARK: command.mark}
    try:
        process = await asyncio.create_subprocess_exec(
            *command.arguments,
            cwd=command.folder,
            env=telling_folder(environment, telling),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            pass_fds=(telling,),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        os.close(reading)
        raise NotStartedError(error) from None
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return process, reading


def _told_folder(descriptor: int) -> Path | None:
    """What the shell wrote when it ended. Closes the pipe."""
    os.set_blocking(descriptor, False)
    try:
        told = os.read(descriptor, 1 << 16)
    except BlockingIOError:
        told = b""
    finally:
        os.close(descriptor)
    return Path(os.fsdecode(told.removesuffix(b"\n"))) if told.startswith(b"/") else None


async def _ends_within(process: asyncio.subprocess.Process, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        return False
    return True


async def _goes_on(leader: int) -> bool:
    """Whether something of a command is left; what is just ending, as a sandbox does, is not."""
    for seconds in _LOOK_SECONDS:
        if not is_alive(leader):
            return False
        await asyncio.sleep(seconds)
    return True


async def _read_rest(reader: PipeReader) -> None:
    reader.drain()
    try:
        async with asyncio.timeout(_AFTER_EXIT_SECONDS):
            await reader.ended.wait()
    except TimeoutError:
        reader.drain()
