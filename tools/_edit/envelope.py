"""Reading patches in the form that some models are trained on: `*** Begin Patch` and what follows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tools._text.paths import RefusalError

_SECTION = re.compile(r"\*\*\* (Add|Update|Delete) File: *(.+?)\s*")
_MOVE = re.compile(r"\*\*\* Move to: *(.+?)\s*")
_PLACE = re.compile(r"@@(?: -\d[\d,]* \+\d[\d,]* @@)? ?(.*?)\s*")
_END_OF_FILE = "*** End of File"
_BEGIN = "*** Begin Patch"
_END = "*** End Patch"


@dataclass(slots=True)
class Hunk:
    """Lines to look for and lines to put there. `places` are lines that come before, the outermost first."""

    places: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    at_end: bool = False

    @property
    def changes_nothing(self) -> bool:
        return self.old == self.new


@dataclass(slots=True)
class FilePatch:
    """What becomes of one file; `hunks` of an update, `lines` of a new file."""

    kind: Literal["Add", "Update", "Delete"]
    path: str
    moved_to: str | None = None
    hunks: list[Hunk] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def parsed(text: str) -> list[FilePatch]:
    """The files of a patch, in order. A fence or a shell's here-document around it is no part of it.

    Raises:
        RefusalError: it cannot be read; the text names the line.
    """
    lines = text.replace("\r\n", "\n").strip("\n").split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip() == _BEGIN), -1)
    after = next((index for index, line in enumerate(lines) if index > first and line.strip() == _END), None)
    sections: list[FilePatch] = []
    for number, line in enumerate(lines[first + 1 : after], first + 2):
        section = _SECTION.fullmatch(line.strip())
        if section and not line.startswith((" ", "+", "-")):
            sections.append(FilePatch(_kind(section[1]), section[2]))
        elif sections:
            _add(sections[-1], line, number)
        elif line.strip():
            raise RefusalError(f"{_at(number, line)} Begin with {_BEGIN} and *** Update File: path.")
    if not sections:
        raise RefusalError(f"The patch names no file. Begin with {_BEGIN} and *** Update File: path.")
    for section in sections:
        _finish(section)
    return sections


def _kind(word: str) -> Literal["Add", "Update", "Delete"]:
    return "Add" if word == "Add" else "Delete" if word == "Delete" else "Update"


def _add(section: FilePatch, line: str, number: int) -> None:
    if section.kind == "Delete":
        if line.strip():
            raise RefusalError(f"{_at(number, line)} Nothing may follow *** Delete File.")
    elif section.kind == "Add":
        if line.startswith("+"):
            section.lines.append(line[1:])
        elif line.strip():
            raise RefusalError(f"{_at(number, line)} Each line of a new file begins with +.")
    else:
        _add_to_update(section, line, number)


def _add_to_update(section: FilePatch, line: str, number: int) -> None:
    move, place = _MOVE.fullmatch(line), _PLACE.fullmatch(line)
    if move:
        section.moved_to = move[1]
        return
    if place:
        _begin_hunk(section, place[1])
        return
    if line.rstrip() == _END_OF_FILE:
        if section.hunks:
            section.hunks[-1].at_end = True
        return
    if not section.hunks:
        section.hunks.append(Hunk())
    hunk = section.hunks[-1]
    sign, rest = line[:1], line[1:]
    if sign not in ("", " ", "+", "-"):
        raise RefusalError(f"{_at(number, line)} Each line of a change begins with a space, - or +.")
    if sign != "+":
        hunk.old.append(rest)
    if sign != "-":
        hunk.new.append(rest)


def _begin_hunk(section: FilePatch, place: str) -> None:
    last = section.hunks[-1] if section.hunks else None
    if last is None or last.old or last.new:
        section.hunks.append(Hunk())
    if place:
        section.hunks[-1].places.append(place)


def _finish(section: FilePatch) -> None:
    section.hunks = [hunk for hunk in section.hunks if _without_blank_end(hunk) and not hunk.changes_nothing]
    if section.kind == "Update" and not section.hunks and section.moved_to is None:
        raise RefusalError(f"The patch changes nothing in {section.path}. Mark lines with - and +.")


def _without_blank_end(hunk: Hunk) -> bool:
    """Drops the empty line that often stands before the next section. True, for use in a condition."""
    while len(hunk.old) > 1 and hunk.old[-1] == "" and hunk.new and hunk.new[-1] == "":
        hunk.old.pop()
        hunk.new.pop()
    return True


def _at(number: int, line: str) -> str:
    return f"Line {number} of the patch is no part of one: {line[:80]!r}."


def paths_in(patches: Sequence[FilePatch]) -> list[str]:
    """All files that are touched, for the permission rules."""
    return [path for patch in patches for path in (patch.path, patch.moved_to) if path]
