"""Collecting what a command prints while it runs."""

import codecs
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from tools._text.truncation import HeadAndTail, readable

HEAD_BYTES = 2048
TAIL_BYTES = 6144


class CommandOutput:
    """Shows output live, keeps its two ends, and writes all of it to a file once it gets long."""

    def __init__(self, spill_folder: Path, emit: Callable[[str], None]) -> None:
        self._ends = HeadAndTail(HEAD_BYTES, TAIL_BYTES)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._emit = emit
        self._spill_folder = spill_folder
        self._spill: IO[bytes] | None = None
        self._spill_failed = False
        self.spill_path: Path | None = None

    def feed(self, data: bytes) -> None:
        if self._ends.total + len(data) > self._ends.capacity:
            self._spill_over(data)
        self._ends.feed(data)
        text = self._decoder.decode(data)
        if text:
            self._emit(text)

    def close(self) -> None:
        rest = self._decoder.decode(b"", final=True)
        if rest:
            self._emit(rest)
        if self._spill:
            with contextlib.suppress(OSError):
                self._spill.close()

    def for_model(self) -> str:
        """The output without its last line end, the cut named where something was left out."""
        if self._ends.complete:
            return readable(self._ends.everything().decode("utf-8", "replace")).rstrip()
        head, tail, left_out = self._ends.ends()
        place = f"; all of it is in {self.spill_path}" if self.spill_path else ""
        cut = f"[... {left_out} bytes left out{place} ...]"
        return f"{readable(head).rstrip()}\n{cut}\n{readable(tail).rstrip()}"

    def _spill_over(self, data: bytes) -> None:
        if self._spill_failed:
            return
        try:
            if self._spill is None:
                self._spill = self._opened()
                self._spill.write(self._ends.everything())
            self._spill.write(data)
        except OSError:  # no space, no folder: the command matters more than its record
            self._spill_failed = True
            self.spill_path = None

    def _opened(self) -> IO[bytes]:
        import tempfile

        self._spill_folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(".txt", "shell-", self._spill_folder)
        self.spill_path = Path(name)
        return os.fdopen(descriptor, "wb")
