"""Line ends: matching on `\\n` alone while the file keeps the ones it has."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Protocol

LF = "\n"
CRLF = "\r\n"
_CRLF = re.compile(CRLF)


def normalise(text: str) -> str:
    return text.replace(CRLF, LF)


def dominant(text: str) -> str | None:
    """The more frequent line end of a text, `None` if it has none."""
    crlf = text.count(CRLF)
    lf = text.count(LF) - crlf
    if crlf == lf == 0:
        return None
    return CRLF if crlf > lf else LF


class NormalisedText:
    """A text with `\\n` line ends, and the way back to the original's positions."""

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = normalise(original)
        crlf = len(original) - len(self.text)
        if crlf in (0, self.text.count(LF)):
            self._ends: _LineEnds = _AllAlike(self.text, CRLF if crlf else LF)
        else:
            self._ends = _Mixed(original, self.text)

    def line_of(self, position: int) -> int:
        """Line number, from 1, of a position in `text`."""
        return self.text.count(LF, 0, position) + 1

    def with_replacements(self, replacements: Iterable[tuple[int, int, str]]) -> str:
        """The original with some spans of `text` replaced.

        Args:
            replacements: `(start, end, new text)` in ascending order, not overlapping. Characters that
                a span and its new text have in common at either end are not touched, so that their
                line ends stay; new lines get the line end of their surroundings.
        """
        parts: list[str] = []
        done = 0
        narrowed = _Narrowing()
        for span_start, span_end, replacement in replacements:
            before, after, middle = narrowed(self.text[span_start:span_end], replacement)
            start, end = span_start + before, span_end - after
            parts.append(self.original[done : self._ends.original_position(start)])
            parts.append(middle.replace(LF, self._ends.near(start, end)) if LF in middle else middle)
            done = self._ends.original_position(end)
        parts.append(self.original[done:])
        return "".join(parts)


class _Narrowing:
    """Finds what two texts do not share at their ends; many replacements of a file are the same."""

    def __init__(self) -> None:
        self._known: tuple[str, str, tuple[int, int, str]] | None = None

    def __call__(self, old: str, new: str) -> tuple[int, int, str]:
        """How many characters are shared before and after, and the rest of the new text."""
        if self._known is None or self._known[0] != old or self._known[1] != new:
            text = normalise(new)
            before = shared_beginning(old, text)
            after = shared_end(old[before:], text[before:])
            self._known = old, new, (before, after, text[before : len(text) - after])
        return self._known[2]


class _LineEnds(Protocol):
    """The line ends of a text, asked about positions without them in ascending order mostly."""

    def original_position(self, position: int) -> int: ...

    def near(self, start: int, end: int) -> str:
        """The line end of new lines that replace this span."""
        ...


class _AllAlike:
    def __init__(self, text: str, line_end: str) -> None:
        self._text = text
        self._line_end = line_end
        self._counted = (0, 0)

    def original_position(self, position: int) -> int:
        if self._line_end == LF:
            return position
        at, count = self._counted if self._counted[0] <= position else (0, 0)
        self._counted = position, count + self._text.count(LF, at, position)
        return position + self._counted[1]

    def near(self, start: int, end: int) -> str:
        return self._line_end


class _Mixed:
    def __init__(self, original: str, text: str) -> None:
        self._text = text
        self._crlf = [match.start() - index for index, match in enumerate(_CRLF.finditer(original))]
        self._next = (0, text.find(LF))

    def original_position(self, position: int) -> int:
        return position + bisect_left(self._crlf, position)

    def near(self, start: int, end: int) -> str:
        inside = self._text.count(LF, start, end)
        if inside:
            crlf = bisect_left(self._crlf, end) - bisect_left(self._crlf, start)
            return CRLF if crlf * 2 > inside else LF
        next_end = self._end_after(start)
        at = bisect_right(self._crlf, next_end) - 1
        return CRLF if at >= 0 and self._crlf[at] == next_end else LF

    def _end_after(self, position: int) -> int:
        """The next line end, or the last one where none follows."""
        since, known = self._next
        if not since <= position <= known:
            self._next = position, self._text.find(LF, position)
        found = self._next[1]
        return found if found >= 0 else self._text.rfind(LF)


def shared_beginning(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # halving compares long texts in one go each time
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def shared_end(one: str, other: str) -> int:
    """How many characters two texts end with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
