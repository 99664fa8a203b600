"""Progress on stderr: a bar where a person watches, a line now and then where nobody does."""

import shutil
import sys
from typing import IO

_BAR_WIDTH = 24
_LINE_EVERY_PERCENT = 10


def show_bytes(count: int) -> str:
    """`98 MB` style, in the units that disks and downloads are sold in."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


class ProgressLine:
    """One line that is written over on a terminal; elsewhere what is new is printed below the last."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._shown = ""

    def show(self, text: str, essence: str | None = None) -> None:
        """Shows `text`. Where nobody watches, it is printed only when `essence` differs from the last one."""
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{text[:width]}")
            self._stream.flush()
            self._shown = text
            return
        essence = text if essence is None else essence
        if essence != self._shown:
            self._stream.write(f"{text}\n")
            self._stream.flush()
            self._shown = essence

    def end(self, text: str = "") -> None:
        """Leaves the line, with a last text in its place if there is one."""
        if self._terminal:
            self._stream.write(f"\r\x1b[K{text}\n" if text else "\r\x1b[K" if self._shown else "")
        elif text:
            self._stream.write(f"{text}\n")
        self._stream.flush()
        self._shown = ""


class DownloadBar:
    """The progress callback of a download, for one file."""

    def __init__(self, name: str, line: ProgressLine) -> None:
        self._name = name
        self._line = line

    def __call__(self, done: int, total: int, label: str) -> None:
        percent = int(100 * done / total) if total else 0
        filled = _BAR_WIDTH * percent // 100
        bar = "#" * filled + "." * (_BAR_WIDTH - filled)
        amount = f"{show_bytes(done)} of {show_bytes(total)}"
        step = percent // _LINE_EVERY_PERCENT
        self._line.show(
            f"{self._name} [{bar}] {percent:3d}% {amount}, {label}", f"{step} {label.partition(' ')[0]}"
        )
