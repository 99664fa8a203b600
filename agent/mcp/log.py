"""What MCP servers say on their standard error, in one file each, of limited size, with times."""

import re
import time
from collections.abc import Callable
from pathlib import Path

from agent.core.private_folder import make_private_folder

LARGEST_BYTES = 1024 * 1024
"""A log that has grown to this size becomes `NAME.log.1`, and a new one begins."""


_TIME = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")


class ServerLog:
    """The log of one server; the folder is made with the first line. A full disk is nobody's problem here.

    `clock` gives Unix seconds; each line begins with the local time when it was read.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._is_within_line = False

    def write(self, content: bytes) -> None:
        """Appends `content`; of a great lot only the end is kept."""
        try:
            make_private_folder(self.path.parent)
            content = self._with_times(content)
            if self._size() + len(content) > LARGEST_BYTES and self._size():
                self.path.replace(self.path.with_name(self.path.name + ".1"))
            with self.path.open("ab") as file:
                file.write(content[-LARGEST_BYTES:])
        except OSError:
            return

    def end(self) -> int:
        """How many bytes there are: what is written from now on begins there."""
        return self._size()

    def last_lines(self, count: int, *, since: int = 0, times: bool = False) -> list[str]:
        """The last lines, decoded; none where there is no log.

        Args:
            since: an earlier `end`; what was written before is left out.
            times: leave the time in front of each line.
        """
        size = self._size()
        begin = since if since <= size else 0  # smaller than before: a new log was begun
        try:
            with self.path.open("rb") as file:
                file.seek(max(begin, size - count * 400))
                content = file.read()
        except OSError:
            return []
        lines = content.decode("utf-8", "replace").splitlines()[-count:]
        return lines if times else [_TIME.sub("", line) for line in lines]

    def _with_times(self, content: bytes) -> bytes:
        mark = time.strftime("%Y-%m-%d %H:%M:%S ", time.localtime(self._clock())).encode("ascii")
        lines = content.splitlines(keepends=True)
        first = b"" if self._is_within_line else mark
        self._is_within_line = not content.endswith(b"\n") and bool(content or self._is_within_line)
        return first + mark.join(lines) if lines else b""

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


def log_of(state: Path, name: str) -> ServerLog:
    """The log of the server `name` below the state folder."""
    return ServerLog(state / "mcp" / "logs" / f"{name}.log")
