"""The quiet blocks: what the person wrote, what the model thought, and one-line notes."""

from collections.abc import Callable, Sequence

from agent.ui.conversation.block import MARGIN, Block, prose_cells
from agent.ui.conversation.line import Line, Span, wrap_cells, wrap_words
from agent.ui.conversation.markdown import MarkdownStream
from agent.ui.conversation.pieces import Piece
from agent.ui.conversation.text import LONGEST_PIECE, expand_tabs, pieces, shown, visible
from agent.ui.text import count, duration

_MOST_USER_ROWS = 16
_SHOWN_USER_ROWS = 12
_CHARACTERS_OF_A_TOKEN = 4
_MOST_BODY_ROWS = 400


class UserText(Block):
    """What the person said; a long text is folded."""

    is_foldable = True

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.is_open = False

    def estimate(self, width: int) -> int:
        rows = self.text.count("\n") + 1 + len(self.text) // (prose_cells(width) - 2)
        return 1 + (rows if self.is_open else min(rows, _SHOWN_USER_ROWS + 1))

    def render(self, width: int) -> list[Line]:
        bar: list[Span] = [(MARGIN[1:], ""), ("▌ ", "person")]
        enough = None if self.is_open else _MOST_USER_ROWS
        lines: list[Line] = []
        text = self.text.rstrip()
        for part in (piece for line in text.split("\n") for piece in pieces(line)):
            lines.extend(wrap_words([(shown(part), "strong")], prose_cells(width), bar, bar))
            if enough is not None and len(lines) > enough:
                break
        if enough is not None and len(lines) > enough:
            lines = lines[:_SHOWN_USER_ROWS]
            more = f"… {text.count(chr(10)) + 1} lines in all" if "\n" in text else "… more"
            lines.append(Line((*bar, (more, "quiet"))))
        return lines

    def toggle(self) -> bool:
        self.is_open = not self.is_open
        return True

    def copy_text(self) -> str:
        return self.text


class Reasoning(Block):
    """What the model thought: one row while closed, all of it in a soft voice when open.

    `seconds` is how long it took, 0 if unknown, as in a session that was read from its record.
    """

    is_foldable = True

    def __init__(self, text: str = "", *, is_open: bool = False) -> None:
        super().__init__()
        self.is_open = is_open
        self.is_running = False
        self.seconds = 0.0
        self._lines = text.split("\n")
        self._characters = len(text)
        self._drawn = 0  # complete lines that are laid out
        self._done = 0  # and their rows

    def feed(self, text: str) -> None:
        first, *more = text.split("\n")
        self._lines[-1] += first
        self._lines.extend(more)
        if len(self._lines[-1]) > LONGEST_PIECE:
            self._lines[-1:] = pieces(self._lines[-1])
        self._characters += len(text)

    def copy_text(self) -> str:
        return "\n".join(self._lines)

    def toggle(self) -> bool:
        self.is_open = not self.is_open
        self.drop()
        return True

    def estimate(self, width: int) -> int:
        if not self.is_open:
            return 2
        return 2 + len(self._lines) + self._characters // (prose_cells(width) - 2)

    def summary(self) -> str:
        parts = ["thinking" if self.is_running else "thought"]
        if self.seconds >= 0.1:
            parts[0] += f" for {duration(self.seconds)}" if self.seconds >= 1 else " for less than 1 s"
        tokens = self._characters / _CHARACTERS_OF_A_TOKEN
        return f"{parts[0]} · about {count(max(tokens, 1))} tokens"

    def refresh(self, width: int) -> int:
        head = [Line(), Line(((f"{MARGIN}∴ ", "quiet"), (self.summary(), "quiet")))]
        if not self.is_open:
            self.lines, self.width, self._drawn = head, width, 0
            return 1
        if self.width != width or self._drawn == 0 or not self.lines:
            self.lines, self.width, self._drawn, self._done = head, width, 0, len(head)
        self.lines[:2] = head
        del self.lines[self._done :]
        for line in self._lines[self._drawn : -1]:
            self.lines.extend(self._rows(line, width))
            self._drawn += 1
        self._done = len(self.lines)
        if self._lines[-1]:
            self.lines.extend(self._rows(self._lines[-1], width))
        return 1

    def _rows(self, line: str, width: int) -> list[Line]:
        left: list[Span] = [(f"{MARGIN}  ", "")]
        rows: list[Line] = []
        for part in pieces(line):
            rows.extend(wrap_words([(shown(part), "thought")], prose_cells(width), left, left))
        return rows


class Note(Block):
    """One quiet row with a sign, and perhaps rows below it that are folded away, words or output."""

    def __init__(self, sign: str, spans: Sequence[Span], *, style: str = "quiet", gap: bool = False) -> None:
        super().__init__()
        self.sign = sign
        self.spans = tuple(spans)
        self.style = style
        self.gap = gap
        self.body = ""
        self.is_prose = False
        self.shown_rows = 0
        self.is_open = False

    @property
    def is_foldable(self) -> bool:
        return bool(self.body)

    def estimate(self, width: int) -> int:
        rows = min(self.body.count("\n") + 1, self.shown_rows + 1) if self.body else 0
        return self.gap + 1 + rows

    def render(self, width: int) -> list[Line]:
        first: list[Span] = [(f"{MARGIN}{self.sign} ", self.style)]
        rest: list[Span] = [(f"{MARGIN}  ", "")]
        spans = [(expand_tabs(visible(text.replace("\n", " "))), style) for text, style in self.spans]
        lines = wrap_words(spans, prose_cells(width), first, rest)
        wrap = wrap_words if self.is_prose else wrap_cells
        return [*lines, *folded_rows(self.body, width, self.shown_rows, is_open=self.is_open, wrap=wrap)]

    def toggle(self) -> bool:
        self.is_open = not self.is_open
        return bool(self.body)

    def copy_text(self) -> str:
        text = "".join(text for text, _ in self.spans)
        return f"{text}\n{self.body}" if self.body else text


def folded_rows(
    text: str,
    width: int,
    most: int,
    *,
    is_open: bool,
    style: str = "soft",
    wrap: Callable[..., list[Line]] = wrap_cells,
) -> list[Line]:
    """`text` below a head, its first `most` rows unless open, and how many lines there are more."""
    if not text.strip() or (most == 0 and not is_open):
        return []
    limit = _MOST_BODY_ROWS if is_open else most
    bar: list[Span] = [(f"{MARGIN}  ", ""), ("│ ", "faint")]
    source = text.rstrip().split("\n")
    lines: list[Line] = []
    for number, line in enumerate(source):
        for part in pieces(line):
            lines.extend(wrap([(shown(part), style)], width - 1, bar, bar))
            if len(lines) > limit:
                break
        if len(lines) > limit:
            del lines[limit:]
            left = len(source) - number
            lines.append(Line((*bar, (f"… {left} more line{'s' * (left != 1)}", "quiet"))))
            break
    return lines


class Reply(Block):
    """A whole message that nobody looked at yet; it becomes its pieces when it comes near the view."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def estimate(self, width: int) -> int:
        return 1 + self.text.count("\n") + len(self.text) // prose_cells(width)

    def unfold(self) -> Sequence[Block]:
        sheet = _List()
        stream = MarkdownStream(sheet)
        stream.feed(self.text)
        stream.finish()
        return sheet.pieces

    def render(self, width: int) -> list[Line]:
        return [Line()]

    def copy_text(self) -> str:
        return self.text


class _List:
    """A sheet that only collects."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []

    def put(self, piece: Piece) -> None:
        self.pieces.append(piece)

    def take_last(self, piece: Piece) -> None:
        self.pieces.remove(piece)

    def changed(self, piece: Piece) -> None:
        return
