"""Append-only files with one JSON object a line, which survive a kill and a power loss.

A line is written with one call at the end of the file, so a reader never sees a line mixed with another.
What a crash can leave is a last line cut short, or a tail of NUL bytes where the file system had grown
the file without its data; readers skip both, and the next append starts on a line of its own.
"""

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Write = Callable[[int, bytes], int]
"""The shape of `os.write`: file descriptor and bytes in, number of bytes written out."""


class LineAppender:
    """Appends JSON lines to one file, which is created for its owner only.

    `exclusive` refuses a file that exists already (FileExistsError). `write` replaces `os.write`.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path, *, exclusive: bool = False, write: Write = os.write) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        self._descriptor = os.open(path, flags | (os.O_EXCL if exclusive else 0), 0o600)
        self._write = write
        self._line_is_open = self._ends_within_a_line()

    @property
    def descriptor(self) -> int:
        return self._descriptor

    def append(self, record: Mapping[str, Any]) -> None:
        """Writes `record` as one line and hands it to the operating system.

        Raises:
            OSError: not everything could be written; the next append leaves the torn line behind.
            ValueError, TypeError, RecursionError: the record cannot be expressed in JSON.
        """
        line = _ENCODER.encode(record)
        rest = f"\n{line}\n".encode("ascii") if self._line_is_open else f"{line}\n".encode("ascii")
        self._line_is_open = True
        while rest:
            rest = rest[self._write(self._descriptor, rest) :]
        self._line_is_open = False

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _ends_within_a_line(self) -> bool:
        size = os.fstat(self._descriptor).st_size
        return size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in `path` in order, without what is torn, NUL or not an object.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        for line in file:
            record = parse_line(line)
            if record is not None:
                yield record


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The object that `line` holds, or None. NUL bytes around it are a power loss's, not content."""
    text = line.strip(b"\0 \t\r\n")
    if not text.startswith(b"{"):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def plain(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of JSON-like data with `change` applied to every string, keys included.

    Infinite and undefined numbers become null, because JSON has no word for them.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(key)): plain(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, change) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    return plain(_as_json(value), change)


def _as_json(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


# ASCII only, so that no reader can take U+2028 and its like for the end of a line.
_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=_as_json)
