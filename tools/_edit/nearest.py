"""Where in a file a text that was not found was probably meant to be."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

SHOWN_LINES = 20
_COMPARED_CLOSELY = 8
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Region:
    """Lines `first` (from 1) and following, as they are in the file."""

    first: int
    lines: tuple[str, ...]

    def numbered(self) -> str:
        return "\n".join(f"{number}\t{line}" for number, line in enumerate(self.lines, self.first))


def nearest_region(text: str, old: str) -> Region | None:
    """The lines of `text` that resemble `old` most, at most 20; `None` if nothing does.

    Windows are ranked by the words they share with `old`, which is linear in the length of the file;
    only the best few are compared letter by letter.
    """
    wanted = old.strip("\n").split("\n")[:SHOWN_LINES]
    lines = text.split("\n")
    starts = _promising_starts(lines, wanted)
    if not starts:
        return None
    target = "\n".join(line.strip() for line in wanted)
    best = max(starts, key=lambda start: (_similarity(lines, start, len(wanted), target), -start))
    after = min(best + len(wanted), len(lines))
    return Region(best + 1, tuple(lines[best:after]))


def _promising_starts(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """First lines of the windows that share most with the wanted lines, rare words counting more."""
    words_wanted = Counter(word for line in wanted for word in _WORD.findall(line))
    lines_wanted = {line.strip() for line in wanted if line.strip()}
    frequency = Counter(word for line in lines for word in set(_WORD.findall(line)) if word in words_wanted)
    scores = [
        sum(1 / frequency[word] for word in set(_WORD.findall(line)) if word in words_wanted)
        + (1.0 if line.strip() in lines_wanted else 0.0)
        for line in lines
    ]
    size = len(wanted)
    window = sum(scores[:size])
    windows = [window]
    for start in range(1, max(1, len(lines) - size + 1)):
        window += scores[start + size - 1] - scores[start - 1]
        windows.append(window)
    order = sorted(range(len(windows)), key=lambda start: -windows[start])[:_COMPARED_CLOSELY]
    return [start for start in order if windows[start] > 1e-9]


def _similarity(lines: Sequence[str], start: int, size: int, target: str) -> float:
    from difflib import SequenceMatcher

    candidate = "\n".join(line.strip() for line in lines[start : start + size])
    return SequenceMatcher(None, candidate[:2000], target[:2000], autojunk=False).ratio()
