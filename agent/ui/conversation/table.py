"""A Markdown table as aligned columns: a bold head, one thin rule, space between columns and no frame."""

import re

from rich.cells import cell_len

from agent.ui.conversation.inline import spans_of
from agent.ui.conversation.line import Line, Span, styled, wrap_words
from agent.ui.conversation.pieces import Piece
from agent.ui.conversation.text import expand_tabs

_BETWEEN = "   "
_NARROWEST = 6
_DELIMITER = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_CELL_ENDS = re.compile(r"(?<!\\)\|")


def is_delimiter_row(line: str) -> bool:
    """Whether `line` is the row of dashes below the head of a table."""
    return "|" in line and "-" in line and len(line) < 2000 and _DELIMITER.match(line) is not None


def cells_of(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL_ENDS.split(inner)]


class Table(Piece):
    """Rows of a table. A part that continues a long one is given the head for its widths, unseen."""

    def __init__(
        self, head: str, delimiter: str, indent: int = 0, *, gap: bool = True, is_first: bool = True
    ):
        super().__init__(indent, gap=gap)
        self.head = head
        self.delimiter = delimiter
        self.is_first = is_first

    def copy_text(self) -> str:
        return "\n".join([self.head, self.delimiter, *self.written()] if self.is_first else self.written())

    def estimate(self, width: int) -> int:
        return self.gap + 2 * self.is_first + len(self.source)

    def render(self, width: int) -> list[Line]:
        head = cells_of(self.head)
        rows = [cells_of(row)[: len(head)] for row in self.written()]
        spans = [[spans_of(expand_tabs(cell)) for cell in row] for row in (head, *rows)]
        room = width - cell_len(self.left()[0]) - len(_BETWEEN) * (len(head) - 1)
        widths = _fitted([_widest(spans, column) for column in range(len(head))], room)
        right = [mark.endswith(":") and not mark.startswith(":") for mark in cells_of(self.delimiter)]
        lines: list[Line] = []
        for number, row in enumerate(spans):
            if number == 0 and not self.is_first:
                continue
            cells = [[(text, styled(style, "strong")) for text, style in cell] for cell in row]
            lines.extend(self._row(cells if number == 0 else row, widths, right))
            if number == 0:
                rule: list[Span] = [self.left()]
                for place, cells_wide in enumerate(widths):
                    rule.append((("" if place == 0 else _BETWEEN) + "─" * cells_wide, "faint"))
                lines.append(Line(rule))
        return lines or [Line((self.left(),))]

    def _row(self, cells: list[list[Span]], widths: list[int], right: list[bool]) -> list[Line]:
        wrapped = [wrap_words(cell, cells_wide) for cell, cells_wide in zip(cells, widths, strict=False)]
        lines: list[Line] = []
        for number in range(max((len(cell) for cell in wrapped), default=1)):
            spans: list[Span] = [self.left()]
            for column, cells_wide in enumerate(widths):
                part = wrapped[column] if column < len(wrapped) else []
                inner = part[number] if number < len(part) else Line()
                space = (" " * max(cells_wide - inner.cells, 0), "")
                is_right = column < len(right) and right[column]
                if column:
                    spans.append((_BETWEEN, ""))
                spans.extend((space, *inner.spans) if is_right else (*inner.spans, space))
            lines.append(Line(spans))
        return lines


def _widest(rows: list[list[list[Span]]], column: int) -> int:
    widths = (sum(cell_len(text) for text, _ in row[column]) for row in rows if column < len(row))
    return max(max(widths, default=1), 1)


def _fitted(widths: list[int], room: int) -> list[int]:
    """Takes from the widest columns until all of them fit."""
    widths = list(widths)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widest = max(widths)
        others = max((width for width in widths if width < widest), default=_NARROWEST)
        count = widths.count(widest)
        give = max(min(widest - max(others, _NARROWEST), -(-(sum(widths) - room) // count)), 1)
        widths = [width - give if width == widest else width for width in widths]
    return widths
