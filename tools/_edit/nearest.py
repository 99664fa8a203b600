"""Where in a file a text that was not found was probably meant to be."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

SHOWN_LINES = 20
_COMPARED_CLOSELY = 8
_LOOKED_AT_WHOLLY = 2_000_000
_RARE_WORDS = 4
_PLACES_PER_WORD = 5
_AROUND = 4000
"""Characters before and after a word."""
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
    only the best few are compared letter by letter. Of a long file only the surroundings of the rarest
    words are looked at.
    """
    wanted = old.strip("\n").split("\n")[:SHOWN_LINES]
    if len(text) <= _LOOKED_AT_WHOLLY:
        best = _best_window(text.split("\n"), wanted)
        return best and best[1]
    candidates = [
        (similarity, Region(region.first + text.count("\n", 0, start), region.lines))
        for start, end in _surroundings(text, wanted)
        for similarity, region in filter(None, [_best_window(text[start:end].split("\n"), wanted)])
    ]
    return max(candidates, key=lambda candidate: candidate[0])[1] if candidates else None


def _best_window(lines: Sequence[str], wanted: Sequence[str]) -> tuple[float, Region] | None:
    starts = _promising_starts(lines, wanted)
    if not starts:
        return None
    target = "\n".join(line.strip() for line in wanted)
    similarity = {start: _similarity(lines, start, len(wanted), target) for start in starts}
    best = max(starts, key=lambda start: (similarity[start], -start))
    after = min(best + len(wanted), len(lines))
    return similarity[best], Region(best + 1, tuple(lines[best:after]))


def _surroundings(text: str, wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Spans of whole lines around the first few places of the rarest words."""
    words = {word for line in wanted for word in _WORD.findall(line) if len(word) > 1}
    counts = sorted((count, word) for word in words if (count := text.count(word)))
    spans: list[tuple[int, int]] = []
    for _, word in counts[:_RARE_WORDS]:
        at = text.find(word)
        for _ in range(_PLACES_PER_WORD):
            if at < 0:
                break
            start = text.rfind("\n", 0, max(0, at - _AROUND)) + 1
            end = text.find("\n", at + _AROUND)
            spans.append((start, end if end >= 0 else len(text)))
            at = text.find(word, spans[-1][1])
    return spans


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
