"""Server-sent events taken apart: bytes as they arrive become the data of events."""

_DONE = "[DONE]"


class EventReader:
    """Reads `text/event-stream`. Only data matters: chat completions give their events no names.

    An event that the stream ends in the middle of is none, as the format says.
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._data: list[str] = []
        self._ended_with_return = False

    def feed(self, piece: bytes) -> list[str]:
        """The data of the events that `piece` completes. Raises UnicodeDecodeError where it is no UTF-8."""
        if self._ended_with_return and piece[:1] == b"\n":
            piece = piece[1:]
        if not piece:
            return []
        self._ended_with_return = piece[-1:] == b"\r"
        if b"\n" not in piece and b"\r" not in piece:
            self._begun.append(piece)
            return []
        lines = b"".join((*self._begun, piece)).splitlines(keepends=True)
        self._begun = [lines.pop()] if lines[-1][-1:] not in (b"\n", b"\r") else []
        found: list[str] = []
        for line in lines:
            self._take(line.rstrip(b"\r\n").decode("utf-8"), found)
        return found

    def _take(self, line: str, found: list[str]) -> None:
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
        elif self._data:
            found.append("\n".join(self._data))
            self._data = []


def is_end(data: str) -> bool:
    """Whether an event says that nothing follows."""
    return data.startswith(_DONE)
