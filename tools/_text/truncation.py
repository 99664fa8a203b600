"""Keeping the ends of an output that is too long, and making terminal output readable."""

import re

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # window titles and links
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movement
    r"|\x1b[@-Z\\-_()#][0-9A-Za-z]?"
)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class HeadAndTail:
    """The first and the last bytes of a stream, in bounded memory."""

    def __init__(self, head_bytes: int, tail_bytes: int) -> None:
        self._head_limit = head_bytes
        self._tail_limit = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def capacity(self) -> int:
        return self._head_limit + self._tail_limit

    @property
    def complete(self) -> bool:
        return self.total <= self.capacity

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._tail_limit :]
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    def everything(self) -> bytes:
        """All bytes so far; only meaningful while `complete`."""
        return bytes(self._head + self._tail)

    def copy(self) -> "HeadAndTail":
        other = HeadAndTail(self._head_limit, self._tail_limit)
        other._head, other._tail, other.total = self._head[:], self._tail[:], self.total
        return other

    def ends(self) -> tuple[bytes, bytes, int]:
        """Beginning, end, and the number of bytes between them, cut at line ends where there are any."""
        head, tail = bytes(self._head), bytes(self._tail[-self._tail_limit :])
        head_cut = head.rfind(b"\n") + 1
        if head_cut:
            head = head[:head_cut]
        tail_cut = tail.find(b"\n", 0, -1) + 1
        tail = tail[tail_cut:] if tail_cut else tail.lstrip(bytes(range(0x80, 0xC0)))
        return head, tail, self.total - len(head) - len(tail)


def readable(text: str) -> str:
    """Terminal output as plain text: no colours, and of a line that was redrawn only the last state."""
    text = _ESCAPES.sub("", text)
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _UNPRINTABLE.sub("", "\n".join(lines))


def shortened(line: str, limit: int) -> str:
    """A line of at most about `limit` characters, naming how much was cut."""
    if len(line) <= limit:
        return line
    return f"{line[:limit]}… (+{len(line) - limit} characters)"
