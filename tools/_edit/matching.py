"""The ladder: exact text, then lines apart from trailing space, from indentation, from look-alikes.

Look-alikes are typographic quotes, dashes, unusual spaces and other spellings of one character. All
texts have `\\n` line ends. The first step with any match is the answer, so that a looser one never
competes with a stricter one.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tools._edit.indentation import indentation_change
from tools._edit.lookalikes import LookAlikes

Level = Literal["exact", "trailing space", "indentation", "look-alike characters"]

_SPACE = " \t\r\f\v"
_COMPARED_LINE_PAIRS = 250_000


@dataclass(frozen=True, slots=True)
class Match:
    """A span of the text, and what belongs there instead."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True, slots=True)
class Found:
    level: Level
    matches: tuple[Match, ...]


def find(text: str, old: str, new: str) -> Found | None:
    """All places of `old`, not overlapping, at the strictest level that has any.

    At the tolerant levels whole lines are compared, blank lines around `old` do not count, and `new`
    is indented like the text that it replaces. Lines that `new` repeats from `old` stay as the file
    has them.
    """
    exact = tuple(_exact(text, at, old, new) for at in _occurrences(text, old))
    if exact:
        return Found("exact", exact)
    wanted = _Block.of(old, new)
    if wanted is None:
        return None
    lines = Lines(text)
    for level, key in _tolerant_rungs(text, old):
        matches = wanted.matches(lines, key)
        if matches:
            return Found(level, matches)
    return None


def find_lines(lines: "Lines", old: Sequence[str], new: Sequence[str], first: int = 0) -> Found | None:
    """Like `find`, for whole lines from line `first` (from 0) on, blank ones included. `new` may be empty."""
    wanted = _Block(old, new)
    exact: tuple[Level, Callable[[str], str]] = ("exact", str)
    for level, key in (exact, *_tolerant_rungs(lines.text, *old)):
        matches = wanted.matches(lines, key, first)
        if matches:
            return Found(level, matches)
    return None


def _tolerant_rungs(text: str, *old: str) -> Sequence[tuple[Level, Callable[[str], str]]]:
    """The rungs that can find something: ways to see lines alike, from the strictest on."""
    rungs: list[tuple[Level, Callable[[str], str]]] = []
    first = next((line.strip(_SPACE) for part in old for line in part.split("\n") if line.strip(_SPACE)), "")
    if first in text:
        rungs.append(("trailing space", _without_trailing_space))
        rungs.append(("indentation", _stripped))
    if not (text.isascii() and all(part.isascii() for part in old)):
        alike = LookAlikes()
        rungs.append(("look-alike characters", lambda line: alike.plain(line).strip()))
    return rungs


def _exact(text: str, at: int, old: str, new: str) -> Match:
    start = at
    if not new and old.endswith("\n"):
        # The indentation of a line that is deleted must not be added to that of the next one.
        line_start = text.rfind("\n", 0, at) + 1
        start = line_start if not text[line_start:at].strip(_SPACE) else at
    return Match(start, at + len(old), new)


def _occurrences(text: str, old: str) -> list[int]:
    places: list[int] = []
    at = text.find(old) if old else -1
    while at >= 0:
        places.append(at)
        at = text.find(old, at + len(old))
    return places


class Lines:
    """The lines of a text with `\\n` line ends, and where they begin in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def line_at(self, position: int) -> int:
        """Number, from 0, of the line with this position."""
        return bisect_right(self.starts, position) - 1

    def span(self, first: int, after: int) -> tuple[int, int]:
        """Positions of whole lines, without the last one's line end."""
        return self.starts[first], self.starts[after] - 1


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines to look for and lines to put there, without blank lines around them."""

    old: Sequence[str]
    new: Sequence[str]

    @classmethod
    def of(cls, old: str, new: str) -> "_Block | None":
        old_lines, new_lines = old.split("\n"), new.split("\n")
        while len(old_lines) > 1 and not old_lines[0].strip():
            del old_lines[0]
            if len(new_lines) > 1 and not new_lines[0].strip():
                del new_lines[0]
        while len(old_lines) > 1 and not old_lines[-1].strip():
            del old_lines[-1]
            if len(new_lines) > 1 and not new_lines[-1].strip():
                del new_lines[-1]
        if not old_lines[0].strip():
            return None
        return cls(old_lines, [] if new_lines == [""] else new_lines)

    def matches(self, lines: Lines, key: Callable[[str], str], first: int = 0) -> tuple[Match, ...]:
        wanted = [key(line) for line in self.old]
        present = [key(line) for line in lines.lines]
        found: list[Match] = []
        length = len(wanted)
        while True:
            try:
                at = present.index(wanted[0], first)
            except ValueError:
                return tuple(found)
            match = self._match_at(lines, at) if present[at : at + length] == wanted else None
            if match:
                found.append(match)
            first = at + (length if match else 1)

    def _match_at(self, lines: Lines, first: int) -> Match | None:
        after = first + len(self.old)
        reindent = indentation_change(self.old, lines.lines[first:after])
        if reindent is None:
            return None
        replacement = "\n".join(self._merged(lines.lines[first:after], reindent))
        start, end = lines.span(first, after)
        if not self.new and end < len(lines.text):
            end += 1  # nothing takes the lines' place, so their line end goes too
        return Match(start, end, replacement)

    def _merged(self, present: Sequence[str], reindent: Callable[[str], str]) -> list[str]:
        """The new lines; those that were not meant to change as they are in the file."""
        merged = [reindent(line) for line in self.new]
        for ours, theirs in _unchanged(self.old, self.new):
            merged[theirs] = present[ours]
        return merged


def _unchanged(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of the lines that both have, in `old` and in `new`."""
    if len(old) * len(new) > _COMPARED_LINE_PAIRS:
        return [
            (index, index) for index, (left, right) in enumerate(zip(old, new, strict=False)) if left == right
        ]
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return [(block.a + offset, block.b + offset) for block in blocks for offset in range(block.size)]


def _without_trailing_space(line: str) -> str:
    return line.rstrip(_SPACE)


def _stripped(line: str) -> str:
    return line.strip(_SPACE)
