"""Rows with colours: what the view hands to Textual."""

from rich.cells import cell_len
from rich.segment import Segment
from textual.selection import Selection
from textual.strip import Strip

from agent.ui.conversation.document import Document
from agent.ui.conversation.line import Line, Spans, between
from agent.ui.conversation.look import Look


def strip_of(spans: Spans, fill: str, width: int, look: Look) -> Strip:
    segments = [Segment(text, look.style(style)) for text, style in spans]
    rest = width - sum(cell_len(text) for text, _ in spans)
    if rest < 0:
        return Strip(segments).crop(0, width)
    if rest:
        segments.append(Segment(" " * rest, look.style(fill)))
    return Strip(segments, width)


def marked(line: Line, row: int, selection: Selection | None, *, is_chosen: bool) -> Spans:
    """The spans of a row of a chosen block, or with selected text; `row` is its place in the document."""
    spans: Spans = line.spans
    if is_chosen and spans and spans[0][0].startswith(" "):
        first, style = spans[0]
        spans = [("▎", "chosen"), (first[1:], style), *spans[1:]]
    span = selection.get_span(row) if selection is not None else None
    if span is None:
        return spans
    size = len(line.text)
    start, end = span[0], size if span[1] < 0 else min(span[1], size)
    end = max(end, start)
    before, inside, after = between(spans, [(0, start), (start, end), (end, size)])
    return [*before, *((text, f"{style}+selected") for text, style in inside), *after]


def selected_text(document: Document, selection: Selection) -> str:
    """The text of the selected rows, as they look; rows that are not laid out are empty."""
    first = selection.start.y if selection.start else 0
    last = selection.end.y if selection.end else document.height - 1
    rows: list[str] = []
    for row in range(first, last + 1):
        line = document.line(row)
        text = line.text if line is not None else ""
        span = selection.get_span(row) or (0, -1)
        rows.append(text[span[0] : None if span[1] < 0 else span[1]].rstrip())
    return "\n".join(rows)
