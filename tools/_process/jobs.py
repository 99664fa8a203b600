"""Commands that go on while the model does something else, until it or the session ends them."""

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.core.lifeline import MARK, Lifeline
from tools._process.command import Command, NotStartedError
from tools._process.environment import quiet_environment
from tools._process.group import is_alive
from tools._process.output import CommandOutput

_CHUNK_BYTES = 1 << 16
_DISCARD_PAUSE_SECONDS = 0.02
_CONTROL = re.compile(r"\s*(?:(jobs)(?:\s+%?(\d+))?|(kill|fg|wait)(?:\s+-\w+)?\s+%(\d+))\s*;?\s*")


@dataclass(frozen=True, slots=True)
class Control:
    """What the model wants to know or do about jobs; `number` None is all of them."""

    action: Literal["look", "wait", "end"]
    number: int | None


def control_in(command: str) -> Control | None:
    """Whether a command line is about jobs, in the words of bash, and nothing else."""
    found = _CONTROL.fullmatch(command)
    if found is None:
        return None
    if found[1]:
        return Control("look", int(found[2]) if found[2] else None)
    return Control("end" if found[3] == "kill" else "wait", int(found[4]))


class Job:
    """One command in the background. A thread of its own reads what it prints."""

    def __init__(
        self,
        number: int,
        line: str,
        command: Command,
        spill_folder: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the command.

        Args:
            line: the command as the model wrote it.

        Raises:
            NotStartedError: there is no such program or folder, or the arguments are impossible.
        """
        self.number = number
        self.line = line
        self.mark = command.mark
        self._clock = clock
        self._began = clock()
        self._output = CommandOutput(spill_folder, lambda text: None, always_kept=True)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._lifeline = Lifeline(command.mark)
        try:
            self._process = _start(command)
        except NotStartedError:
            self._lifeline.release()
            raise
        self._lifeline.hold(self.leader)
        threading.Thread(target=self._read, name=f"job {number}", daemon=True).start()

    @property
    def leader(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; the negative number of the signal that killed it."""
        return self._process.returncode if self._ended.is_set() else self._process.poll()

    @property
    def is_running(self) -> bool:
        return self.returncode is None or is_alive(self.leader)

    @property
    def seconds(self) -> int:
        return round(self._clock() - self._began)

    @property
    def kept_in(self) -> Path | None:
        return self._output.spill_path

    def wait(self, seconds: float) -> bool:
        """Blocks until it has ended and all of its output is read, or the seconds are over."""
        return self._ended.wait(seconds)

    def let_go(self) -> None:
        """For when nothing of it is left."""
        self._lifeline.release()

    def news(self) -> str:
        """What it has printed since the last time."""
        with self._lock:
            return self._output.take()

    def _read(self) -> None:
        stream = self._process.stdout
        if stream is None:
            raise RuntimeError("a job is started with a pipe")
        with stream:
            while data := os.read(stream.fileno(), _CHUNK_BYTES):
                with self._lock:
                    self._output.feed(data)
                if self._output.is_full:
                    time.sleep(_DISCARD_PAUSE_SECONDS)
        self._process.wait()
        with self._lock:
            self._output.close()
        if not is_alive(self.leader):
            self._lifeline.release()
        self._ended.set()


def _start(command: Command) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            command.arguments,
            cwd=command.folder,
            env={**quiet_environment(command.environment), MARK: command.mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        raise NotStartedError(error) from None
