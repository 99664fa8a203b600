"""What to tell a model whose edit does not fit, and what if it tries the same one again."""

import hashlib
from collections.abc import Sequence

from tools._edit.nearest import nearest_region
from tools._text.line_ends import NormalisedText
from tools._text.paths import RefusalError
from tools._text.truncation import shortened

_LINES_NAMED = 10
_LINE_CHARACTERS = 300
_TRIED_IN_VAIN = 2


class Misses:
    """Counts how often the same edit failed on the same content of a file."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}
        self._foreseen: bytes | None = None

    def count(self, name: str, old: str, text: str, *, foreseen: bool = False) -> int:
        """How often this has failed, this time included.

        What was only `foreseen`, in a preview, and then happens has failed once.
        """
        parts = (part.encode("utf-8", "surrogatepass") for part in (name, old, text))
        key = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
        happens, self._foreseen = key == self._foreseen and not foreseen, key if foreseen else None
        if not happens:
            self._counts[key] = self._counts.get(key, 0) + 1
        return self._counts[key]

    def forget(self) -> None:
        self._counts.clear()
        self._foreseen = None


def not_found(
    content: NormalisedText, name: str, old: str, new: str, times: int, *, what: str = "old"
) -> RefusalError:
    """The refusal of an edit whose old text, called `what`, is not there; `times` counts this one."""
    if not content.text:
        return RefusalError(f"{name} is empty. Use write to give it content.")
    if times > _TRIED_IN_VAIN:
        return _blocked(name)
    region = nearest_region(content.text, old)
    if region is None:
        again = " again" if times > 1 else ""
        return RefusalError(
            f"{what} was{again} not found in {name}, nor anything like it. Read the file first."
        )
    already = content.text.find(new) if new.strip() else -1
    if already >= 0 and abs(content.line_of(already) - region.first) <= 1:
        return RefusalError(
            f"{what} is not in {name}, but new is there already, at line {content.line_of(already)}. Go on."
        )
    lines = "\n".join(shortened(line, _LINE_CHARACTERS) for line in region.numbered().split("\n"))
    if times == 1:
        return RefusalError(
            f"{what} was not found in {name}. The nearest lines are:\n{lines}\n"
            f"Copy {what} exactly from there."
        )
    difference = _first_difference(region.first, region.lines, old)
    return RefusalError(
        f"The same edit failed before: {what} is not in {name}. {difference}The file has:\n{lines}\n"
        f"Do not send this edit again. Take fewer lines for {what}, one may do, letter by letter from above."
    )


def not_unique(
    content: NormalisedText,
    name: str,
    starts: Sequence[int],
    times: int,
    *,
    what: str = "old is",
    advice: str = "Add neighbouring lines to old to make it unique, or set all.",
) -> RefusalError:
    """The refusal of an edit whose old text is there more than once."""
    if times > _TRIED_IN_VAIN:
        return _blocked(name)
    lines = line_numbers(content, starts)
    if times == 1:
        return RefusalError(f"{what} {len(starts)} times in {name}, at lines {lines}. {advice}")
    all_lines = content.text.split("\n")
    shown = [
        f"{number}\t{shortened(all_lines[number - 1], _LINE_CHARACTERS)}"
        for start in starts[:_LINES_NAMED]
        for number in _with_line_before(content.line_of(start))
    ]
    return RefusalError(
        f"The same edit failed before: {what[:1].lower()}{what[1:]} {len(starts)} times in {name}. "
        + "With the line before each:\n"
        + "\n".join(shown)
        + f"\nDo not send this edit again. {advice}"
    )


def line_numbers(content: NormalisedText, starts: Sequence[int]) -> str:
    named = ", ".join(str(content.line_of(start)) for start in starts[:_LINES_NAMED])
    return f"{named} and {len(starts) - _LINES_NAMED} more" if len(starts) > _LINES_NAMED else named


def _with_line_before(number: int) -> tuple[int, ...]:
    return (number - 1, number) if number > 1 else (number,)


def _blocked(name: str) -> RefusalError:
    return RefusalError(
        f"Blocked: this edit of {name} failed twice and would fail again. Read {name}, then send "
        "another one, or replace the file with write."
    )


def _first_difference(first: int, present: Sequence[str], old: str) -> str:
    for offset, (theirs, ours) in enumerate(zip(present, old.strip("\n").split("\n"), strict=False)):
        if theirs != ours:
            return (
                f"Line {first + offset} is {shortened(theirs, _LINE_CHARACTERS)!r}, "
                f"you wrote {shortened(ours, _LINE_CHARACTERS)!r}. "
            )
    return ""
