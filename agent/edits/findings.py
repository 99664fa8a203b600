"""Findings in the output of a checker, and which of them an edit has brought."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.outside_text import one_line, tidy

LONGEST_FINDING = 200
MOST_FINDINGS = 500
"""So many findings of one run are looked at."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# `a.py:3:5: text`, `a.py:3: text`, `a.ts(3,5): text`, `a.py:3:5 - text`, `error: Failed in a.py:3:5: text`
_WITH_PATH = re.compile(
    r"(?:^|\s)(?P<path>(?=[^\s:(]*[A-Za-z])[^\s:(]+)(?::(?P<line>\d+)(?::\d+)?|\((?P<row>\d+)(?:,\d+)?\))"
    r"(?::|\s-)\s*(?P<text>(?!\d+$)\S.*)$"
)
# `  --> a.rs:3:5` below a line with the message
_ARROW = re.compile(r"^\s*--> (?P<path>[^\s:]+):(?P<line>\d+):\d+$")
# `[error] a.js: text (3:5)`
_PLACE_LAST = re.compile(r"(?P<path>[^\s:]+): (?P<text>.*) \((?P<line>\d+):\d+\)$")
# `  3:5  text` below a line that names the file
_WITHOUT_PATH = re.compile(r"^\s*(?P<line>\d+):\d+\s+(?P<text>\S.*)$")
_OTHER_LINE = re.compile(r"\bline \d+")
_NUMBER = re.compile(r"\b\d+\b")


@dataclass(frozen=True, slots=True)
class Finding:
    """`text` is the line as it was printed, `key` what stays of it when lines move; `line` 0 is unknown."""

    text: str
    key: str
    line: int = 0


def findings_in(output: str, workspace: Path) -> tuple[Finding, ...]:
    """The lines with a place in them; where there are none, all lines of `output`.

    Summaries, code frames and advice that checkers print around them are left out that way.
    """
    plain = _COLOUR.sub("", output).replace(f"{workspace}/", "")
    lines = [line for line in tidy(plain).split("\n") if line.strip()]
    above = ["", *lines]
    placed = [found for line, last in zip(lines, above, strict=False) if (found := _placed(line, last))]
    found = placed or [
        Finding(one_line(line, LONGEST_FINDING), _NUMBER.sub("#", " ".join(line.split()))) for line in lines
    ]
    return tuple(found[:MOST_FINDINGS])


def has_places(findings: Sequence[Finding]) -> bool:
    """Whether these are findings in code, and not just words of a program."""
    return any(found.line for found in findings)


def new_findings(before: Sequence[Finding], after: Sequence[Finding], changed: range) -> list[Finding]:
    """What is in `after` more often than in `before`. Of equal ones those nearest to the changed lines count.

    Args:
        changed: the lines, from 1, that the edit has touched.
    """
    known: defaultdict[str, int] = defaultdict(int)
    for found in before:
        known[found.key] += 1
    groups: defaultdict[str, list[Finding]] = defaultdict(list)
    for found in after:
        groups[found.key].append(found)
    new: set[int] = set()
    for key, group in groups.items():
        nearest = sorted(group, key=lambda found: _distance(found.line, changed))
        new |= {id(found) for found in nearest[: max(0, len(group) - known[key])]}
    return [found for found in after if id(found) in new]


def changed_lines(before: str, after: str) -> range:
    """The lines of `after`, counted from 1, between the first and the last that differ from `before`.

    Empty where both are the same; where lines only went away, it is the line that follows them.
    """
    if before == after:
        return range(0)
    old, new = before.split("\n"), after.split("\n")
    shortest = min(len(old), len(new))
    head = 0
    while head < shortest and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shortest - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return range(head + 1, max(head + 1, len(new) - tail) + 1)


def _placed(line: str, line_above: str) -> Finding | None:
    arrow = _ARROW.match(line)
    if arrow is not None:
        line = f"{arrow['path']}:{arrow['line']}: {line_above.strip()}"
    found = _WITH_PATH.search(line) or _PLACE_LAST.search(line) or _WITHOUT_PATH.match(line)
    if found is None:
        return None
    parts = found.groupdict()
    text = " ".join(_OTHER_LINE.sub("line #", parts["text"]).split())
    number = int(parts["line"] or parts.get("row") or 0)
    return Finding(one_line(line, LONGEST_FINDING), f"{parts.get('path') or ''}: {text}", number)


def _distance(line: int, changed: range) -> int:
    if not changed or line in changed:
        return 0
    return min(abs(line - changed[0]), abs(line - changed[-1]))
