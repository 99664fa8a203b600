"""Markdown while it is being written: text goes in as it comes, finished pieces are never looked at again.

Only what models write is understood: paragraphs, headings, lists, quotations, fenced code, tables, rules.
The result does not depend on where the stream was cut into deltas. A piece that gets long is continued in
another one, so that the cost of a delta is bounded by the size of a piece and not of the text.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.ui.conversation.pieces import Code, Heading, Paragraph, Piece, Quote, Rule
from agent.ui.conversation.table import Table, is_delimiter_row
from agent.ui.conversation.text import LONGEST_PIECE, pieces

MOST_CODE_LINES = 200
_MOST_CODE_CHARACTERS = 16_000
_MOST_ROWS = 60

_FENCE = re.compile(r"^( *)(`{3,}|~{3,})\s*([^`]*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_RULE = re.compile(r"^ {0,3}([-*_])(?:\s*\1){2,}\s*$")
_ITEM = re.compile(r"^( *)([-*+•]|\d{1,9}[.)])( +|$)(.*)$")
_UNDERLINE = re.compile(r"^ {0,3}(=+|-+)\s*$")
# A line that could still become anything; it is not shown before it is clear what it is.
_UNCLEAR = re.compile(r"^\s*(`{1,3}|~{1,3}|[-#*+|=_>\s]{1,6}|\d{1,3}[.)]?)\s*$")
_BULLETS = "•◦▪"
_TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}

Action = Literal["skip", "blank", "continue", "new", "become", "close"]


class Sheet(Protocol):
    """Where pieces are put."""

    def put(self, piece: Piece) -> None: ...
    def take_last(self, piece: Piece) -> None: ...
    def changed(self, piece: Piece) -> None: ...


@dataclass(slots=True)
class _Fence:
    mark: str
    indent: int


@dataclass(slots=True)
class _Level:
    """A list item that is open: where its text begins in the source and on the screen."""

    source: int
    shown: int


@dataclass(slots=True)
class _Place:
    """What a line does. `make` gives the piece that it begins."""

    action: Action
    make: Callable[[], Piece] | None = None
    text: str = ""


class MarkdownStream:
    """Turns one message into pieces on a `Sheet`. Use `feed` and, at the end, `finish`."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._rest = ""
        self._open: Piece | None = None
        self._preview: Piece | None = None
        self._fence: _Fence | None = None
        self._levels: list[_Level] = []
        self._blank = True

    def feed(self, text: str) -> None:
        """Takes more text. Show the result with `preview` when there is time to draw."""
        self._take_back_preview()
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        for line in lines:
            self._line(line.removesuffix("\r"))
        if len(self._rest) > LONGEST_PIECE:
            *full, self._rest = pieces(self._rest)
            for part in full:
                self._long_part(part)

    def preview(self) -> None:
        """Shows the line that is not complete yet."""
        self._take_back_preview()
        line = self._rest.removesuffix("\r")
        if not line or self._is_unclear(line):
            return
        place = self._place(line)
        if place.action == "continue" and self._open is not None:
            self._open.partial = place.text
            self._sheet.changed(self._open)
        elif place.action == "new" and place.make is not None:
            levels, fence = list(self._levels), self._fence
            piece = place.make()
            self._levels, self._fence = levels, fence
            piece.partial = None if isinstance(piece, Code | Rule) else place.text
            self._preview = piece
            self._sheet.put(piece)

    def finish(self) -> None:
        """No more text comes: what was incomplete is complete now."""
        self._take_back_preview()
        if self._rest:
            line, self._rest = self._rest, ""
            self._line(line.removesuffix("\r"))
        self._open = None
        self._fence = None

    def _take_back_preview(self) -> None:
        if self._preview is not None:
            self._sheet.take_last(self._preview)
            self._preview = None
        if self._open is not None and self._open.partial is not None:
            self._open.partial = None
            self._sheet.changed(self._open)

    def _is_unclear(self, line: str) -> bool:
        if self._fence is not None:
            return bool(line.strip()) and not line.strip().strip(self._fence.mark[0])
        return len(line) < 12 and _UNCLEAR.match(line) is not None

    def _line(self, line: str) -> None:
        for part in pieces(line)[:-1]:
            self._long_part(part)
        last = pieces(line)[-1]
        place = self._place(last)
        match place.action:
            case "blank":
                self._blank = True
                if not isinstance(self._open, Code):
                    self._open = None
            case "close":
                self._close_fence()
            case "continue":
                self._continue(place.text)
            case "new" | "become":
                self._begin(place)
            case "skip":
                pass

    def _long_part(self, part: str) -> None:
        """Part of a line that is too long for one piece, and does not end here."""
        if isinstance(self._open, Code):
            self._room_for_code(self._open).add(part, ends=False)
            self._sheet.changed(self._open)
            return
        place = self._place(part)
        if place.action == "continue":
            self._continue(place.text)
        else:
            self._begin(_Place("new", place.make or (lambda: self._paragraph(0)), place.text or part))
        indent = self._open.indent if self._open is not None else 0
        self._open = Paragraph(indent, gap=False)
        self._sheet.put(self._open)

    def _begin(self, place: _Place) -> None:
        if place.make is None:
            return
        if place.action == "become" and self._open is not None:
            self._sheet.take_last(self._open)
        piece = place.make()
        self._open = piece if not isinstance(piece, Rule | Heading) else None
        if not isinstance(piece, Code | Rule | Table):
            piece.add(place.text)
        self._sheet.put(piece)
        self._blank = False

    def _continue(self, text: str) -> None:
        piece = self._open
        if piece is None:
            return
        if isinstance(piece, Code):
            piece = self._room_for_code(piece)
        elif isinstance(piece, Table) and len(piece.source) >= _MOST_ROWS:
            piece = Table(piece.head, piece.delimiter, piece.indent, gap=False, is_first=False)
            self._open = piece
            self._sheet.put(piece)
        elif piece.characters + len(text) > LONGEST_PIECE:
            piece = piece.continued()
            self._open = piece
            self._sheet.put(piece)
        piece.add(text)
        self._sheet.changed(piece)

    def _room_for_code(self, piece: Code) -> Code:
        if len(piece.source) < MOST_CODE_LINES and piece.characters < _MOST_CODE_CHARACTERS:
            return piece
        piece.is_last = False
        more = Code(piece.language, piece.indent, gap=False, opened=piece.state, is_first=False)
        self._open = more
        self._sheet.put(more)
        return more

    def _close_fence(self) -> None:
        piece = self._open
        self._fence = None
        self._open = None
        self._blank = True
        if isinstance(piece, Code):
            self._sheet.changed(piece)

    def _place(self, line: str) -> _Place:
        if self._fence is not None:
            return self._in_code(line, self._fence)
        if not line.strip():
            return _Place("blank")
        line = line.replace("\t", "    ") if line[0] in " \t" else line
        return self._below_paragraph(line) or self._beginning(line) or self._running(line)

    def _beginning(self, line: str) -> _Place | None:
        """What a line with a mark at its front begins."""
        if fence := _FENCE.match(line):
            return _Place("new", lambda: self._code(fence))
        if heading := _HEADING.match(line):
            return _Place("new", lambda: Heading(len(heading[1])), heading[2])
        if _RULE.match(line):
            return _Place("new", lambda: Rule(gap=True))
        if item := _ITEM.match(line):
            return _Place("new", lambda: self._item(item), self._task(item[4])[1])
        return None

    def _running(self, line: str) -> _Place:
        """A line that goes on with what is open, or begins a quotation or a paragraph."""
        if line.lstrip().startswith(">"):
            is_more = isinstance(self._open, Quote)
            return _Place("continue", text=line) if is_more else _Place("new", self._quote, line)
        if isinstance(self._open, Paragraph | Quote):
            return _Place("continue", text=line)
        return _Place("new", lambda: self._paragraph(len(line) - len(line.lstrip())), line)

    def _in_code(self, line: str, fence: _Fence) -> _Place:
        bare = line.strip()
        if bare.startswith(fence.mark) and not bare.strip(fence.mark[0]):
            return _Place("close")
        spaces = len(line) - len(line.lstrip(" "))
        return _Place("continue", text=line[min(spaces, fence.indent) :])

    def _below_paragraph(self, line: str) -> _Place | None:
        """What a line makes of the paragraph or table above it."""
        piece = self._open
        if isinstance(piece, Table):
            return _Place("continue", text=line) if "|" in line else None
        if type(piece) is not Paragraph or piece.mark or len(piece.source) != 1:
            return None
        above, gap, indent = piece.source[0], piece.gap, piece.indent
        if "|" in above and is_delimiter_row(line):
            return _Place("become", lambda: Table(above, line, indent, gap=gap))
        underline = _UNDERLINE.match(line)
        if underline is not None and len(underline[1]) >= 3:
            level = 1 if underline[1][0] == "=" else 2
            return _Place("become", lambda: Heading(level, indent, gap=gap), above)
        return None

    def _code(self, fence: re.Match[str]) -> Piece:
        self._fence = _Fence(fence[2], len(fence[1]))
        self._leave_lists(len(fence[1]))
        words = fence[3].split()
        return Code(words[0].strip("{}.") if words else "", self._indent(), gap=True)

    def _paragraph(self, column: int) -> Piece:
        if self._blank:
            self._leave_lists(column)
        return Paragraph(self._indent(), gap=self._blank or isinstance(self._open, Table))

    def _quote(self) -> Piece:
        return Quote(self._indent(), gap=self._blank)

    def _item(self, item: re.Match[str]) -> Piece:
        column = len(item[1])
        self._leave_lists(column)
        indent = self._indent()
        marker = item[2]
        mark = f"{marker} " if marker[0].isdigit() else f"{_BULLETS[min(len(self._levels), 2)]} "
        mark += self._task(item[4])[0]
        spaces = len(item[3]) if 0 < len(item[3]) < 5 else 1
        self._levels.append(_Level(column + len(marker) + spaces, indent + len(mark)))
        return Paragraph(indent, gap=self._blank, mark=mark)

    def _task(self, text: str) -> tuple[str, str]:
        box = _TASKS.get(text[:4])
        return (box, text[4:]) if box else ("", text)

    def _leave_lists(self, column: int) -> None:
        while self._levels and column < self._levels[-1].source:
            self._levels.pop()

    def _indent(self) -> int:
        return self._levels[-1].shown if self._levels else 0
