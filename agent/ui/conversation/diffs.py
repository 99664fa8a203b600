"""Changes to a file for people: numbered rows in one column, or old beside new where it fits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from agent.core.tool import FileDiff
from agent.ui.conversation.block import MARGIN
from agent.ui.conversation.highlight import START, highlight, language_of_path
from agent.ui.conversation.line import Line, Span, Spans, wrap_cells

SIDE_BY_SIDE_CELLS = 140
"""Width from which on old and new stand beside each other."""

_CONTEXT = 2
# Comparing takes up to the product of both lengths; above this, old lines go and new ones come as a whole.
_MOST_COMPARISONS = 4_000_000

_LONGEST_LINE = 1000  # characters shown of one line

Kind = Literal["same", "removed", "added", "cut"]


@dataclass(frozen=True, slots=True)
class Change:
    """One row of a diff. Numbers count from 1, None where the line is not on that side."""

    kind: Kind
    text: str
    old: int | None = None
    new: int | None = None


def changes(diff: FileDiff) -> list[Change]:
    """The rows of a unified diff with two lines of context; `cut` stands for unchanged lines left out."""
    old, new = (diff.before or "").splitlines(), (diff.after or "").splitlines()
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    old, new = [_cut(line) for line in old], [_cut(line) for line in new]
    rows: list[Change] = []
    for tag, a, b, c, d in _opcodes(middle_old, middle_new):
        if tag == "equal":
            rows.extend(
                Change("same", old[i + head], i + head + 1, j + head + 1)
                for i, j in zip(range(a, b), range(c, d), strict=True)
            )
            continue
        rows.extend(Change("removed", old[i + head], old=i + head + 1) for i in range(a, b))
        rows.extend(Change("added", new[j + head], new=j + head + 1) for j in range(c, d))
    before = [Change("same", old[i], i + 1, i + 1) for i in range(max(head - _CONTEXT, 0), head)]
    shift = len(new) - len(old)
    end = len(old) - tail
    after = [Change("same", old[i], i + 1, i + 1 + shift) for i in range(end, min(end + _CONTEXT, len(old)))]
    return list(_without_long_context([*before, *rows, *after])) if rows else []


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if not old and not new:
        return []
    if len(old) * len(new) > _MOST_COMPARISONS:
        return [("replace", 0, len(old), 0, len(new))]
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _without_long_context(rows: list[Change]) -> Iterator[Change]:
    wanted = set()
    for place, row in enumerate(rows):
        if row.kind != "same":
            wanted.update(range(place - _CONTEXT, place + _CONTEXT + 1))
    left_out = 0
    for place, row in enumerate(rows):
        if place not in wanted:
            left_out += 1
            continue
        if left_out:
            yield Change("cut", f"… {left_out} unchanged")
            left_out = 0
        yield row


def count_of(rows: Sequence[Change]) -> tuple[int, int]:
    """Lines added and lines removed."""
    return sum(row.kind == "added" for row in rows), sum(row.kind == "removed" for row in rows)


def title(diff: FileDiff) -> str:
    if diff.before is None:
        return f"{diff.path} (new file)"
    return f"{diff.path} (deleted)" if diff.after is None else diff.path


_SIGNS = {
    "same": (" ", "", ""),
    "removed": ("-", "removed", "on-removed"),
    "added": ("+", "added", "on-added"),
}


def drawn(diff: FileDiff, rows: Sequence[Change], width: int) -> list[Line]:
    """`rows` as lines of the screen, in one column below `SIDE_BY_SIDE_CELLS` or if only one side has any."""
    language = language_of_path(diff.path)
    digits = max((len(str(row.new or row.old or 0)) for row in rows), default=1)
    both = diff.before is not None and diff.after is not None
    if both and width >= SIDE_BY_SIDE_CELLS:
        return _beside(rows, width, language, digits)
    lines: list[Line] = []
    state = START
    for row in rows:
        if row.kind == "cut":
            lines.append(Line(((f"{MARGIN}  {' ' * digits} {row.text}", "faint"),)))
            state = START
            continue
        spans, after = highlight(row.text, language, state)
        state = after if row.kind != "removed" else state
        lines.extend(_row(row, spans, digits, width, f"{MARGIN}  "))
    return lines


def _row(row: Change, spans: Spans, digits: int, width: int, left: str) -> list[Line]:
    sign, style, fill = _SIGNS[row.kind]
    number = f"{row.new or row.old:>{digits}}"
    first: list[Span] = [(f"{left}", ""), (f"{number} ", f"{fill}+faint"), (f"{sign} ", f"{fill}+{style}")]
    rest: list[Span] = [(f"{left}", ""), (" " * (digits + 3), fill)]
    inner = [(text, f"{fill}+{name}" if fill else name) for text, name in spans]
    return wrap_cells(inner, width - 1, first, rest, fill)


def _beside(rows: Sequence[Change], width: int, language: str, digits: int) -> list[Line]:
    half = (width - len(MARGIN) - 5) // 2
    lines: list[Line] = []
    for old, new in _pairs(rows):
        if old is not None and old.kind == "cut":
            lines.append(Line(((f"{MARGIN}  {' ' * digits} {old.text}", "faint"),)))
            continue
        left = _side(old, language, digits, half)
        right = _side(new, language, digits, half)
        for one, other in zip_longest(left, right):
            spans: list[Span] = [(f"{MARGIN}  ", ""), *_padded(one, half), (" ", ""), *_padded(other, half)]
            lines.append(Line(spans))
    return lines


def _side(row: Change | None, language: str, digits: int, width: int) -> list[Line]:
    if row is None:
        return []
    one_side = Change(row.kind, row.text, new=row.old if row.kind == "removed" else row.new)
    return _row(one_side, highlight(row.text, language)[0], digits, width + 1, "")


def _padded(line: Line | None, width: int) -> list[Span]:
    if line is None:
        return [(" " * width, "")]
    return [*line.spans, (" " * max(width - line.cells, 0), line.fill)]


def _pairs(rows: Sequence[Change]) -> Iterator[tuple[Change | None, Change | None]]:
    removed: list[Change] = []
    added: list[Change] = []
    for row in [*rows, Change("same", "")]:
        if row.kind == "removed":
            if added:
                yield from zip_longest(removed, added)
                removed, added = [], []
            removed.append(row)
        elif row.kind == "added":
            added.append(row)
        else:
            yield from zip_longest(removed, added)
            removed, added = [], []
            if row.kind == "cut" or row.old is not None:
                yield row, row
