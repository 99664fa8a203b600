"""The blocks that Markdown is made of: paragraph, heading, list item, quotation, code, table, rule.

A piece grows by whole lines while it is the last one; `partial` is the line that is still being written.
Pieces are kept small by `markdown`, so laying one out anew is always cheap.
"""

from collections.abc import Sequence

from agent.ui.conversation.block import MARGIN, Block, prose_cells
from agent.ui.conversation.highlight import START, State, highlight
from agent.ui.conversation.inline import spans_of
from agent.ui.conversation.line import Line, Span, Spans, wrap_cells, wrap_words
from agent.ui.conversation.text import expand_tabs, shown

_SHORT_LINE = 50  # characters; who ends a line that early means it


class Piece(Block):
    """Part of a Markdown text. `source` are its complete lines, without line ends.

    Attributes:
        indent: cells that lists around it move it to the right.
        message: number of the message that it is part of, for copying the whole of it.
    """

    def __init__(self, indent: int = 0, *, gap: bool = True) -> None:
        super().__init__()
        self.gap = gap
        self.indent = indent
        self.source: list[str] = []
        self.partial: str | None = None
        self.message = 0

    @property
    def characters(self) -> int:
        return sum(map(len, self.source))

    def add(self, line: str) -> None:
        self.source.append(line)

    def written(self) -> list[str]:
        return [*self.source, self.partial] if self.partial is not None else self.source

    def copy_text(self) -> str:
        return "\n".join(self.written())

    def estimate(self, width: int) -> int:
        room = prose_cells(width) - 2
        return self.gap + max(sum(1 + len(line) // room for line in self.source), 1)

    def continued(self) -> "Piece":
        """An empty piece to go on in when this one is long."""
        return type(self)(self.indent, gap=False)

    def left(self) -> Span:
        return (MARGIN + " " * self.indent, "")


class Paragraph(Piece):
    """Running text. `mark` stands before its first row: the bullet or number of a list item."""

    def __init__(self, indent: int = 0, *, gap: bool = True, mark: str = "") -> None:
        super().__init__(indent, gap=gap)
        self.mark = mark

    def style(self) -> str:
        return ""

    def continued(self) -> Piece:
        return Paragraph(self.indent + len(self.mark), gap=False)

    def text(self) -> str:
        parts: list[str] = []
        for line in self.written():
            if parts:
                before = parts[-1]
                breaks = len(before) < _SHORT_LINE or before.endswith(("  ", "\\"))
                parts[-1] = before.rstrip() if not before.endswith("\\") else before[:-1]
                parts.append("\n" if breaks else " ")
            parts.append(expand_tabs(line.lstrip()))
        return "".join(parts).replace("<br>", "\n")

    def render(self, width: int) -> list[Line]:
        first: list[Span] = [self.left()]
        rest: list[Span] = [self.left()]
        if self.mark:
            first.append((self.mark, "quiet"))
            rest.append((" " * len(self.mark), ""))
        return wrap_words(spans_of(self.text(), self.style()), prose_cells(width), first, rest)


class Heading(Paragraph):
    def __init__(self, level: int, indent: int = 0, *, gap: bool = True) -> None:
        super().__init__(indent, gap=gap)
        self.level = level

    def style(self) -> str:
        return "heading" if self.level <= 2 else "strong"

    def copy_text(self) -> str:
        return f"{'#' * self.level} {super().copy_text()}"


class Quote(Piece):
    """Quoted text, with a bar beside it. Lines that are lists or the like keep their line breaks."""

    def render(self, width: int) -> list[Line]:
        bar: Spans = (self.left(), ("▎ ", "quiet"))
        lines: list[Line] = []
        for line in self.written():
            text = line.lstrip()[1:].removeprefix(" ") if line.lstrip().startswith(">") else line.strip()
            lines.extend(wrap_words(spans_of(expand_tabs(text), "soft"), prose_cells(width), bar, bar))
        return lines or [Line(bar)]


class Rule(Piece):
    def render(self, width: int) -> list[Line]:
        return [Line((self.left(), ("─" * max(prose_cells(width) - 4 - self.indent, 3), "faint")))]


class Code(Piece):
    """Part of a fenced block: its lines, coloured as they become complete and never again.

    `opened` is the state that the part before left; only the first part shows the language.
    """

    def __init__(
        self,
        language: str,
        indent: int = 0,
        *,
        gap: bool = True,
        opened: State = START,
        is_first: bool = True,
    ) -> None:
        super().__init__(indent, gap=gap)
        self.language = language
        self.is_first = is_first
        self.is_last = True
        self.ends: list[bool] = []  # whether a line end follows, False inside a line that was cut
        self._opened = opened
        self._state = opened
        self._coloured: list[list[Span]] = []
        self._done = 0  # rows that will not change any more

    @property
    def state(self) -> State:
        """What the next part begins with."""
        self._colour()
        return self._state

    def add(self, line: str, *, ends: bool = True) -> None:
        super().add(line)
        self.ends.append(ends)

    def copy_text(self) -> str:
        lines = zip(self.source, [*self.ends], strict=False)
        return "".join(line + ("\n" if ends else "") for line, ends in lines) + (self.partial or "")

    def estimate(self, width: int) -> int:
        room = max(width - 6, 10)
        rows = sum(1 + max(len(line) - 1, 0) // room for line in self.source)
        return self.gap + rows + (1 if self.is_first else 0)

    def drop(self) -> None:
        super().drop()
        self._coloured = []
        self._state = self._opened
        self._done = 0

    def refresh(self, width: int) -> int:
        """As for any block, but only for lines that came since the last time."""
        if self.width != width or not self.lines:
            self.lines = ([Line()] if self.gap else []) + self._heading()
            self.width = width
            self._coloured, self._state = [], self._opened
            self._done = len(self.lines)
        first = self._done
        drawn = len(self._coloured)
        self._colour()
        fresh: list[Line] = []
        for spans in self._coloured[drawn:]:
            fresh.extend(self._rows(spans, width))
        self._done += len(fresh)
        self.lines[first:] = self._with_open_line(fresh, width)
        if not self.lines:
            self.lines = [Line((self.left(),), "")]
        return first

    def _with_open_line(self, lines: list[Line], width: int) -> list[Line]:
        if self.partial:
            lines.extend(self._rows([(shown(self.partial), "")], width))
        return lines

    def _colour(self) -> None:
        for line in self.source[len(self._coloured) :]:
            spans, self._state = highlight(line, self.language, self._state)
            self._coloured.append(spans)

    def _heading(self) -> list[Line]:
        if not self.is_first or not self.language:
            return []
        return [Line((self.left(), (f" {shown(self.language)}", "on-code+quiet")), "on-code")]

    def _rows(self, spans: Sequence[Span], width: int) -> list[Line]:
        on_code = [(text, f"on-code+{style}" if style else "on-code") for text, style in spans]
        first: Spans = (self.left(), (" ", "on-code"))
        return wrap_cells(on_code, width - 1, first, first, "on-code")


def whole_code(blocks: Sequence[Block], part: Code) -> str:
    """A long code block is several blocks in a document; to people it is one. `part` is any of them."""
    first = part.index
    while first > 0 and not getattr(blocks[first], "is_first", True):
        first -= 1
    texts: list[str] = []
    for block in blocks[first:]:
        if not isinstance(block, Code) or (texts and block.is_first):
            break
        texts.append(block.copy_text())
    return "".join(texts)
