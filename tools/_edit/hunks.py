"""From the hunks of a patch to spans of a file's text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools._edit.envelope import Hunk
from tools._edit.matching import Lines, Match, find_lines


@dataclass(frozen=True, slots=True)
class Misfit:
    """A hunk that has no place. `starts` are the positions of several; none means that it was not found."""

    hunk: Hunk
    number: int
    starts: tuple[int, ...] = ()


def placed(text: str, hunks: Sequence[Hunk], is_tolerant: bool) -> list[Match] | Misfit:
    """Where each hunk belongs, in the order of the text; hunks have to follow each other there.

    A hunk must fit in one place after the hunk before it and after its own places. Where lines name a place
    the first fit after it counts. `is_tolerant` allows differences in white space and look-alikes.
    """
    lines = Lines(text)
    matches: list[Match] = []
    first = 0
    for number, hunk in enumerate(hunks, 1):
        after_places = _after_places(lines, hunk, first)
        if after_places is None:
            return Misfit(Hunk(old=hunk.places), number)
        if not hunk.old:
            at = after_places if hunk.places else _line_count(lines)
            matches.append(_insertion(lines, at, hunk.new))
            first = at
            continue
        found = find_lines(lines, hunk.old, hunk.new, after_places)
        if found is None or (found.level != "exact" and not is_tolerant):
            return Misfit(hunk, number)
        fits = (
            [match for match in found.matches if _is_at_end(match, text)]
            if hunk.at_end
            else list(found.matches)
        )
        if not fits:
            return Misfit(hunk, number)
        if len(fits) > 1 and not hunk.places:
            return Misfit(hunk, number, tuple(match.start for match in fits))
        matches.append(fits[0])
        first = lines.line_at(fits[0].start) + len(hunk.old)
    return matches


def _after_places(lines: Lines, hunk: Hunk, first: int) -> int | None:
    """The line after the last of the lines that name the place; None if one is missing."""
    for place in hunk.places:
        keys: tuple[Callable[[str], bool], ...] = (
            lambda line, place=place: line == place,
            lambda line, place=place: line.strip() == place.strip(),
            lambda line, place=place: line.strip().startswith(place.strip()),
        )
        rows = range(first, len(lines.lines))
        at = next((row for fits in keys for row in rows if fits(lines.lines[row])), None)
        if at is None:
            return None
        # The line that names the place is often repeated as the first line of context.
        first = at if hunk.old and hunk.old[0].strip() == lines.lines[at].strip() else at + 1
    return first


def _line_count(lines: Lines) -> int:
    return len(lines.lines) - (lines.lines[-1] == "")


def _insertion(lines: Lines, at: int, new: Sequence[str]) -> Match:
    added = "\n".join(new)
    if at < len(lines.lines):
        start = lines.starts[at]
        return Match(start, start, f"{added}\n")
    return Match(len(lines.text), len(lines.text), f"\n{added}" if lines.text else f"{added}\n")


def _is_at_end(match: Match, text: str) -> bool:
    return not text[match.end :].strip("\n")
