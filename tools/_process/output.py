"""Collecting what a command prints while it runs."""

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO

from tools._text.encodings import detect
from tools._text.truncation import HeadAndTail, readable

HEAD_BYTES = 2048
TAIL_BYTES = 6144
LONGEST_FILE_BYTES = 1 << 30
LEAST_FREE_BYTES = 1 << 29
"""So much of the disk is left to the person."""
SHOWN_LIVE_BYTES = 1 << 18
"""Live output is shown as a whole up to here. Beyond it people see the end of each such piece."""
_LIVE_SAMPLE_BYTES = 1 << 11
_CHECKED_EVERY_BYTES = 1 << 26

# A line that is drawn again from its beginning, such as a progress bar; the last state of it stays.
_RETURNS = re.compile(rb"\r{2,}")
_REDRAWN = re.compile(rb"(?:[^\r\n]*\r)+(?!\n)")
_LONGEST_LINE_HELD = 1 << 16


class CommandOutput:
    """Shows output live, keeps its two ends, and writes all of it to a file once it gets long.

    Needs the same memory for any length. `always_kept` writes the file from the first byte on, for whoever
    reads it meanwhile.
    """

    def __init__(self, spill_folder: Path, emit: Callable[[str], None], *, always_kept: bool = False) -> None:
        self._ends = HeadAndTail(HEAD_BYTES, TAIL_BYTES)
        self._beginning = bytearray()
        self._held = b""
        self._live = _LiveText(emit)
        self._file = _KeptFile(spill_folder, at_once=always_kept)
        self._always_kept = always_kept
        self._total = 0

    @property
    def spill_path(self) -> Path | None:
        return self._file.path

    @property
    def is_full(self) -> bool:
        """Whether the file takes no more; what follows is only seen at its end."""
        return self._file.is_full

    def feed(self, data: bytes) -> None:
        self._total += len(data)
        if self._always_kept or self._total > self._ends.capacity:
            self._file.write(bytes(self._beginning) + data if self._beginning else data)
            self._beginning.clear()
        else:
            self._beginning += data
        self._collapse(data)
        self._live.feed(data)

    def close(self) -> None:
        self._live.close()
        self._file.close()

    def for_model(self) -> str:
        """The output without its last line end, the cut named where something was left out."""
        ends = self._ends
        if self._held:
            ends = ends.copy()
            ends.feed(self._held)
        if ends.complete:
            return readable(_decoded(ends.everything())).rstrip()
        head, tail, left_out = ends.ends()
        return (
            f"{readable(_decoded(head)).rstrip()}\n{self._cut(left_out)}\n{readable(_decoded(tail)).rstrip()}"
        )

    def take(self) -> str:
        """What came since the last time, as `for_model`."""
        text = self.for_model()
        self._ends = HeadAndTail(HEAD_BYTES, TAIL_BYTES)
        self._held = b""
        return text

    def _cut(self, left_out: int) -> str:
        if not self.spill_path:
            return f"[... {left_out} bytes left out ...]"
        amount = f"the first {self._file.size} bytes are" if self.is_full else "all of it is"
        return f"[... {left_out} bytes left out; {amount} in {self.spill_path} ...]"

    def _collapse(self, data: bytes) -> None:
        """Hands on what has come, without the states of lines that are drawn over."""
        if self._held or b"\r" in data:
            data = _RETURNS.sub(b"\r", self._held + data)
            # What is to become of a line with a return in it only its end tells.
            line = data.rfind(b"\n") + 1
            data, rest = data[:line], data[line:]
            last = rest.rstrip(b"\r").rfind(b"\r")
            if b"\r" in rest and len(rest) - max(0, last) <= _LONGEST_LINE_HELD:
                self._held = rest[max(0, last) :]
            else:
                data, self._held = data + rest, b""
            data = _REDRAWN.sub(b"\r", data)
        self._ends.feed(data)


class _LiveText:
    """Passes text on as it comes, and of very much of it samples."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        import codecs

        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._emit = emit
        self._fed = 0
        self._waiting = b""
        self._unshown = 0

    def feed(self, data: bytes) -> None:
        self._fed += len(data)
        if self._fed <= SHOWN_LIVE_BYTES:
            text = self._decoder.decode(data)
            if text:
                self._emit(text)
            return
        self._unshown += len(data)
        self._waiting = (self._waiting + data[-_LIVE_SAMPLE_BYTES:])[-_LIVE_SAMPLE_BYTES:]
        if self._unshown >= SHOWN_LIVE_BYTES:
            self._show_sample()

    def close(self) -> None:
        rest = self._decoder.decode(b"", final=True)
        if rest:
            self._emit(rest)
        if self._waiting:
            self._show_sample()

    def _show_sample(self) -> None:
        skipped = self._unshown - len(self._waiting)
        note = f"\n[... {skipped} bytes not shown ...]\n" if skipped > 0 else ""
        self._emit(note + self._waiting.decode("utf-8", "replace"))
        self._waiting, self._unshown = b"", 0


class _KeptFile:
    """A file with the output, up to a limit. The command matters more than its record."""

    def __init__(self, folder: Path, *, at_once: bool) -> None:
        self._folder = folder
        self._at_once = at_once
        self._stream: IO[bytes] | None = None
        self._unchecked = 0
        self._failed = False
        self.path: Path | None = None
        self.size = 0
        self.is_full = False

    def write(self, data: bytes) -> None:
        if self._failed or self.is_full:
            return
        try:
            stream = self._stream or self._opened()
            room = LONGEST_FILE_BYTES - self.size
            stream.write(data[:room])
            self.size += min(room, len(data))
            self.is_full = len(data) > room or self._takes_last_room(len(data))
            if self.is_full or self._at_once:
                stream.flush()
        except OSError:  # no space, no folder
            self._failed = True
            self._give_up()

    def close(self) -> None:
        if self._stream:
            with contextlib.suppress(OSError):
                self._stream.close()

    def _takes_last_room(self, written: int) -> bool:
        self._unchecked += written
        if self._unchecked < _CHECKED_EVERY_BYTES:
            return False
        self._unchecked = 0
        status = os.statvfs(self._folder)
        return status.f_bavail * status.f_frsize < LEAST_FREE_BYTES

    def _give_up(self) -> None:
        """A part without its end is no record, and the room that it takes may be what is missing."""
        self.close()
        if self.path:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self.path = None

    def _opened(self) -> IO[bytes]:
        import tempfile

        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(".txt", "shell-", self._folder)
        self.path = Path(name)
        self._stream = os.fdopen(descriptor, "wb")
        return self._stream


def _decoded(data: bytes) -> str:
    """Output as text: UTF-8, or what a Chinese Windows program or an old file has."""
    format_ = detect(data)
    if format_ is not None and format_.encoding in ("gbk", "gb18030"):
        return data.decode(format_.encoding, "replace")
    return data.decode("utf-8", "replace")
