"""A program in a pseudo-terminal, and somebody who types into it and looks how soon each letter appears."""

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

COLUMNS, ROWS = 120, 40
# None of these is in a text that is streamed.
LETTERS = "αβγδεζηθικλμνξοπρστυφχψωабвгдежзийклмнопрстуфхцчшщыэюя"
PAUSE_SECONDS = 0.08
LOST_SECONDS = 5.0
BACKSPACE = "\x7f"
_KEPT_CHARACTERS = 70_000


@dataclass
class Echoes:
    """Seconds from key press to echo, by when the key was pressed (monotonic clock)."""

    pressed: list[tuple[float, float]] = field(default_factory=list)

    def figures(self, begin: float = 0.0, end: float = float("inf")) -> dict[str, float | int | None]:
        times = sorted(seconds for at, seconds in self.pressed if begin <= at < end)
        if not times:
            return {"keys": 0, "echo_p50_seconds": None, "echo_p99_seconds": None}
        return {
            "keys": len(times),
            "echo_p50_seconds": round(times[len(times) // 2], 4),
            "echo_p99_seconds": round(times[min(int(len(times) * 0.99), len(times) - 1)], 4),
            "echo_max_seconds": round(times[-1], 4),
        }


class Program:
    """Runs `command` in `folder` until the context ends. `latest_text` is the end of what it wrote."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        colours = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        everything = {**os.environ, **colours, **environment}
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(sys.executable, list(command), everything)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        # A terminal that echoes by itself would show the letter before anybody read it.
        modes = termios.tcgetattr(self._terminal)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(self._terminal, termios.TCSANOW, modes)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_open = True
        self._typed = 0
        self.latest_text = ""
        self.bytes_written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)

    def send(self, text: str) -> None:
        os.write(self._terminal, text.encode("utf-8"))

    def read(self, longest_seconds: float) -> bool:
        """Takes what the program writes next; False if it wrote nothing or has ended."""
        ready, _, _ = select.select([self._terminal], [], [], longest_seconds)
        if not ready:
            return False
        try:
            data = os.read(self._terminal, 65536)
        except OSError:
            data = b""
        self._is_open = bool(data)
        self.bytes_written += len(data)
        self.latest_text = (self.latest_text + self._decoder.decode(data))[-_KEPT_CHARACTERS:]
        return self._is_open

    def wait_for(self, text: str, *, longest_seconds: float) -> None:
        """Raises TimeoutError: `text` was not written from now on."""
        self.latest_text = ""
        until = time.monotonic() + longest_seconds
        while text not in self.latest_text:
            if time.monotonic() > until or not self._is_open:
                raise TimeoutError(f"{text!r} was never shown")
            self.read(0.05)

    def wait_for_quiet(self, *, longest_seconds: float, quiet_seconds: float = 1.0) -> None:
        """Until nothing is written for a while. Raises TimeoutError."""
        until = time.monotonic() + longest_seconds
        while self.read(quiet_seconds):
            if time.monotonic() > until:
                raise TimeoutError("the terminal never came to rest")

    def watch_for(self, seconds: float) -> Echoes:
        until = time.monotonic() + seconds
        while self._is_open and (left := until - time.monotonic()) > 0:
            self.read(left)
        return Echoes()

    def type_for(self, seconds: float) -> Echoes:
        """Types a letter, waits for it, takes it away again, and so on. A letter not shown in time counts."""
        echoes = Echoes()
        until = time.monotonic() + seconds
        while self._is_open and time.monotonic() < until:
            letter = LETTERS[self._typed % len(LETTERS)]
            self._typed += 1
            self.latest_text = ""
            pressed_at = time.monotonic()
            self.send(letter)
            while self._is_open and letter not in self.latest_text:
                self.read(0.05)
                if time.monotonic() - pressed_at > LOST_SECONDS:
                    break
            if not self._is_open:
                break
            echoes.pressed.append((pressed_at, time.monotonic() - pressed_at))
            self.send(BACKSPACE)
            pause_until = time.monotonic() + PAUSE_SECONDS
            while self._is_open and (left := pause_until - time.monotonic()) > 0:
                self.read(left)
        return echoes


def processor_seconds(process: int) -> float:
    """User and system time so far, of the threads that it still has; Linux only.

    In nanoseconds from the scheduler. The times in `stat` are counted in ticks of a clock, and a program that
    wakes up by timers is on the processor at a tick more often than it should be by chance.
    """
    threads = Path(f"/proc/{process}/task").iterdir()
    return sum(int((thread / "schedstat").read_text("ascii").split()[0]) for thread in threads) / 1e9
