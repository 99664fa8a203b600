"""What was sent in this project, kept across sessions."""

import json
import os
from pathlib import Path

from agent.core.private_folder import make_private_folder

MOST_ENTRIES = 2_000


class InputHistory:
    """Entries from the oldest to the newest, in a file of JSON lines that several programs may append to.

    A file that cannot be read or written costs the history, never the session.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.entries: list[str] = []
        self._place: int | None = None
        self._unsent = ""

    def load(self) -> None:
        """Reads the file; lines that are broken, as after a crash, are passed over."""
        if self._path is None:
            return
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return
        loaded = [entry for line in lines if (entry := _read(line))]
        if len(lines) > 2 * MOST_ENTRIES:
            self._rewrite(loaded[-MOST_ENTRIES:])
        self.entries = [*loaded[-MOST_ENTRIES:], *self.entries]

    def add(self, text: str) -> None:
        self._place = None
        if not text.strip() or (self.entries and self.entries[-1] == text):
            return
        self.entries.append(text)
        if self._path is None:
            return
        line = json.dumps({"text": text}, ensure_ascii=True) + "\n"
        try:
            make_private_folder(self._path.parent)
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            return
        try:
            torn = b"\n" if _is_torn(descriptor) else b""
            os.write(descriptor, torn + line.encode("ascii"))
        except OSError:
            return
        finally:
            os.close(descriptor)

    def older(self, current: str) -> str | None:
        """The entry before the one that is shown; None at the beginning. Keeps `current` to come back to."""
        if self._place is None:
            self._unsent = current
            self._place = len(self.entries)
        if self._place == 0:
            return None
        self._place -= 1
        return self.entries[self._place]

    def newer(self) -> str | None:
        """The entry after the one that is shown, at last the unsent text; None when none is shown."""
        if self._place is None:
            return None
        self._place += 1
        if self._place >= len(self.entries):
            self._place = None
            return self._unsent
        return self.entries[self._place]

    def leave(self) -> None:
        """What is shown is being edited: the next `older` starts from the newest again."""
        self._place = None

    def newest_first(self) -> list[str]:
        """Every entry once."""
        return list(dict.fromkeys(reversed(self.entries)))

    def _rewrite(self, entries: list[str]) -> None:
        from agent.ui.entry.files import write_private

        if self._path is not None:
            text = "".join(json.dumps({"text": entry}, ensure_ascii=True) + "\n" for entry in entries)
            write_private(self._path, text)


def _is_torn(descriptor: int) -> bool:
    """Whether the file ends within a line, as after a disk that was full: the next would be lost with it."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _read(line: str) -> str:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    text = record.get("text") if isinstance(record, dict) else None
    return text if isinstance(text, str) else ""
