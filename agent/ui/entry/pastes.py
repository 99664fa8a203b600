"""Long pastes stand as a short placeholder in the input, and are put back in when it is sent."""

from dataclasses import dataclass, field

MOST_LINES = 8
MOST_CHARACTERS = 800


def normalised(text: str) -> str:
    """Pasted text with one kind of line end; many terminals send a carriage return for each."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass
class Pastes:
    """The pastes of one text, by placeholder."""

    texts: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def fold(self, text: str) -> str:
        """`text`, or a placeholder for it where it is long."""
        lines = text.removesuffix("\n").count("\n") + 1
        if lines <= MOST_LINES and len(text) <= MOST_CHARACTERS:
            return text
        return self._kept("paste", f": {lines} lines" if lines > 1 else f": {len(text)} characters", text)

    def stand_for_image(self, mention: str) -> str:
        """A placeholder for an image that is kept in a file with a long name."""
        return self._kept("image", "", mention)

    def _kept(self, what: str, more: str, text: str) -> str:
        while True:
            self._count += 1
            placeholder = f"[{what} {self._count}{more}]"
            if placeholder not in self.texts:
                self.texts[placeholder] = text
                return placeholder

    def expand(self, text: str) -> str:
        """`text` with every placeholder that is still whole replaced, pasted text itself untouched."""
        if not self.texts:
            return text
        import re

        pattern = "|".join(re.escape(placeholder) for placeholder in self.texts)
        return re.sub(pattern, lambda match: self.texts[match[0]], text)

    def ending_at(self, before_cursor: str) -> str:
        """The placeholder that stands directly before the cursor, or nothing."""
        return next((known for known in self.texts if before_cursor.endswith(known)), "")

    def clear(self) -> None:
        self.texts.clear()
