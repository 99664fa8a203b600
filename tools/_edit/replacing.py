"""What one edit makes of a text: exact or nearly so, and in one place unless all are meant."""

from dataclasses import dataclass
from typing import Protocol

from tools._edit.matching import Found, Match, find
from tools._edit.misses import Misses, line_numbers, not_found, not_unique
from tools._edit.prefixes import without_line_numbers
from tools._text.line_ends import NormalisedText, normalise
from tools._text.paths import RefusalError


class Replacement(Protocol):
    """`old` becomes `new`, in each place where it stands if `all`."""

    @property
    def old(self) -> str: ...

    @property
    def new(self) -> str: ...

    @property
    def all(self) -> bool: ...


def replaced(
    text: str, name: str, edit: Replacement, *, is_known: bool, misses: Misses, foreseen: bool
) -> tuple[str, str]:
    """The text after an edit, and what is said of it.

    Args:
        name: of the file, as the model is told it.
        is_known: whether the model has read the file; else only an exact match counts.
        foreseen: for a preview, see `Misses.count`.

    Raises RefusalError: it does not fit, fits more than once, or changes nothing.
    """
    wanted = _Wanted.of(edit)
    content = NormalisedText(text)
    found = wanted.find_in(content)
    if found is None:
        times = misses.count(name, edit.old, content.text, foreseen=foreseen)
        raise not_found(content, name, wanted.plain_old or wanted.old, wanted.new, times)
    if not is_known and found.level != "exact":
        raise RefusalError(f"old was not found exactly in {name}, which you have not read. Read it first.")
    starts = [match.start for match in found.matches]
    if len(starts) > 1 and not edit.all:
        times = misses.count(name, edit.old, content.text, foreseen=foreseen)
        raise not_unique(content, name, starts, times)
    after = content.with_replacements(map(_span, found.matches))
    if after == text:
        raise RefusalError(f"Nothing changed: {name} already reads like new there. Go on with the next step.")
    note = "" if found.level == "exact" else f" ({found.level} differed and was adapted)"
    return after, f"Edited {name} at line {line_numbers(content, starts)}{note}."


def _span(match: Match) -> tuple[int, int, str]:
    return match.start, match.end, match.replacement


@dataclass(frozen=True, slots=True)
class _Wanted:
    """`plain_old` and `plain_new` are without line numbers, None where there are none."""

    old: str
    new: str
    plain_old: str | None
    plain_new: str | None

    @classmethod
    def of(cls, edit: Replacement) -> "_Wanted":
        if not edit.old:
            raise RefusalError("old is empty. Copy the text to replace from the file into old.")
        if edit.old == edit.new:
            raise RefusalError("Nothing changed: old and new are the same. Put the changed text into new.")
        old, new = normalise(edit.old), normalise(edit.new)
        return cls(old, new, without_line_numbers(old), without_line_numbers(new))

    def find_in(self, content: NormalisedText) -> Found | None:
        found = find(content.text, self.old, self.new)
        if found or not self.plain_old:
            return found
        return find(content.text, self.plain_old, self.new if self.plain_new is None else self.plain_new)
