"""Rows of the screen before they have colours: spans of text with the name of a style."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from textual.strip import Strip

from agent.ui.conversation.text import rows_of_cells, rows_of_words

Span = tuple[str, str]
"""Text and the names of its style, several joined by `+`. See `look` for the names."""

Spans = Sequence[Span]


class Line:
    """One row. `fill` is the style of the rest of the row; `strip` is the view's, kept while it is near."""

    __slots__ = ("fill", "spans", "strip")

    def __init__(self, spans: Iterable[Span] = (), fill: str = "") -> None:
        self.spans = tuple(spans)
        self.fill = fill
        self.strip: Strip | None = None

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.spans)

    @property
    def cells(self) -> int:
        return sum(cell_len(text) for text, _ in self.spans)

    def same_as(self, other: "Line") -> bool:
        return self.spans == other.spans and self.fill == other.fill


def styled(name: str, more: str) -> str:
    """Two style names together; the second one wins where both say something."""
    return f"{name}+{more}" if name and more else name or more


def between(spans: Spans, rows: Iterable[tuple[int, int]]) -> list[list[Span]]:
    """The parts of `spans` that lie in each of `rows`, which are in order and count characters."""
    result: list[list[Span]] = []
    index = position = 0
    for start, end in rows:
        row: list[Span] = []
        while index < len(spans):
            text, style = spans[index]
            after = position + len(text)
            if after > start:
                part = text[max(start - position, 0) : end - position]
                if part:
                    row.append((part, style))
            if after > end:
                break
            position = after
            index += 1
        result.append(row)
    return result


def wrap_words(spans: Spans, width: int, first: Spans = (), rest: Spans = (), fill: str = "") -> list[Line]:
    """Rows of at most `width` cells; the first begins with `first`, all others with `rest`."""
    lines: list[Line] = []
    inner = width - sum(cell_len(text) for text, _ in first)
    for paragraph in _split_lines(spans):
        text = "".join(part for part, _ in paragraph)
        for row in between(paragraph, rows_of_words(text, inner)):
            lines.append(Line((*(rest if lines else first), *row), fill))
    return lines


def wrap_cells(spans: Spans, width: int, first: Spans = (), rest: Spans = (), fill: str = "") -> list[Line]:
    """As `wrap_words`, but a row ends where it is full. `spans` are one line."""
    text = "".join(part for part, _ in spans)
    inner = width - sum(cell_len(part) for part, _ in first)
    rows = rows_of_cells(text, inner)
    if len(rows) == 1:
        return [Line((*first, *spans), fill)]
    return [Line((*(rest if index else first), *row), fill) for index, row in enumerate(between(spans, rows))]


def _split_lines(spans: Spans) -> list[list[Span]]:
    lines: list[list[Span]] = [[]]
    for text, style in spans:
        if "\n" not in text:
            lines[-1].append((text, style))
            continue
        head, *tail = text.split("\n")
        if head:
            lines[-1].append((head, style))
        lines.extend([(part, style)] if part else [] for part in tail)
    return lines
