"""Line ends: matching on `\\n` alone while the file keeps the ones it has."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

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
        self._crlf = [match.start() - index for index, match in enumerate(_CRLF.finditer(original))]

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
        for span_start, span_end, replacement in replacements:
            start, end, middle = self._narrowed(span_start, span_end, normalise(replacement))
            parts.append(self.original[done : self._original_position(start)])
            parts.append(middle.replace(LF, self._line_end_near(start, end)) if LF in middle else middle)
            done = self._original_position(end)
        parts.append(self.original[done:])
        return "".join(parts)

    def _narrowed(self, start: int, end: int, new: str) -> tuple[int, int, str]:
        old = self.text[start:end]
        prefix = shared_beginning(old, new)
        rest_old, rest_new = old[prefix:], new[prefix:]
        suffix = shared_end(rest_old, rest_new)
        return start + prefix, end - suffix, rest_new[: len(rest_new) - suffix]

    def _original_position(self, position: int) -> int:
        return position + bisect_left(self._crlf, position)

    def _line_end_near(self, start: int, end: int) -> str:
        inside = self.text.count(LF, start, end)
        if inside:
            crlf = bisect_left(self._crlf, end) - bisect_left(self._crlf, start)
            return CRLF if crlf * 2 > inside else LF
        next_end = self.text.find(LF, start)
        if next_end < 0:
            next_end = self.text.rfind(LF)
        at = bisect_right(self._crlf, next_end) - 1
        return CRLF if at >= 0 and self._crlf[at] == next_end else LF


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
