"""Text from models and tools, made harmless and cut into rows of a terminal. Plain functions.

Nothing here is markup: a bracket stays a bracket. Widths are terminal cells as `rich.cells` measures them,
because Textual crops by the same measure.
"""

import re

from rich.cells import cell_len, split_graphemes

TAB_CELLS = 4
LONGEST_PIECE = 4000
"""Characters of one unbroken piece of text; a longer one is laid out in several, so that none is slow."""

# C0 without tab and line feed, DEL, C1, soft hyphen, zero width and bidirectional controls, line separators,
# interlinear marks, lone surrogates and tag characters: all that steers, hides or reorders. The zero width
# joiners U+200C and U+200D are part of words and of emoji and stay.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
# Characters of one cell that neither join nor combine with their neighbours.
_NARROW = re.compile(
    "[\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0373\u0400-\u0481\u2010-\u2015\u2018-\u201e\u2020-\u2022\u2026"
    "\u2030-\u203b\u20a0-\u20bf\u2190-\u21ff\u2500-\u25f0]*"
)


def visible(text: str) -> str:
    """`text` with every character that a terminal would act on shown as a symbol. Line feed and tab stay."""
    return _STEERING.sub(_symbol, text)


def _symbol(found: re.Match[str]) -> str:
    number = ord(found.group())
    if number < 0x20:
        return chr(0x2400 + number)  # the pictures of Unicode for them: ␛ ␇ ␍
    if number == 0x7F:
        return "\u2421"
    return f"‹{number:04X}›"


def expand_tabs(line: str, before: int = 0) -> str:
    """`line` with each tab as the spaces up to the next stop, counted in cells from `before`."""
    if "\t" not in line:
        return line
    parts: list[str] = []
    column = before
    pieces = line.split("\t")
    for piece in pieces[:-1]:
        column += cell_len(piece)
        spaces = TAB_CELLS - column % TAB_CELLS
        parts.append(piece + " " * spaces)
        column += spaces
    return "".join(parts) + pieces[-1]


def shown(line: str) -> str:
    """One line, ready for the screen: harmless and without tabs or line ends."""
    return expand_tabs(visible(line.replace("\n", " ")))


def one_line(text: str, width: int) -> str:
    """The beginning of `text` on one line of at most `width` cells."""
    line = shown(" ".join(text[: width * 8].split()))
    if len(text) <= width * 8 and cell_len(line) <= width:
        return line
    return f"{line[: cells_fit(line, width - 1)].rstrip()}…" if width > 0 else ""


def is_narrow(text: str) -> bool:
    """Whether each character is one cell and stands for itself, so that lengths are widths."""
    return _NARROW.fullmatch(text) is not None


def cells_fit(text: str, width: int) -> int:
    """How many characters of `text` fit into `width` cells, never cutting a visible character in two."""
    if is_narrow(text[: width + 1]):
        return min(len(text), max(width, 0))
    used = 0
    for start, _, cells in split_graphemes(text[: width * 8 + 8])[0]:
        used += cells
        if used > width:
            return start
    return len(text) if len(text) <= width * 8 + 8 else width * 8 + 8


Row = tuple[int, int]
"""Where one row of the screen begins and ends in a text."""


def rows_of_words(text: str, width: int) -> list[Row]:
    """Breaks `text` (one line) between words. A word longer than a row is broken anywhere."""
    width = max(width, 1)
    return _narrow_word_rows(text, width) if is_narrow(text) else _wide_word_rows(text, width)


def _narrow_word_rows(text: str, width: int) -> list[Row]:
    rows: list[Row] = []
    start, size = 0, len(text)
    while size - start > width:
        end = text.rfind(" ", start + 1, start + width + 1)
        if end <= start or not text[start:end].strip():
            rows.append((start, start + width))
            start += width
            continue
        rows.append((start, end))
        start = end
        while start < size and text[start] == " ":
            start += 1
    if start < size or not rows:
        rows.append((start, size))
    return rows


def _wide_word_rows(text: str, width: int) -> list[Row]:
    rows: list[Row] = []
    start = used = 0  # of the present row
    chance = -1  # where this row may end: after a space, or beside a character of two cells
    since = 0  # cells from there on
    for begin, end, counted in split_graphemes(text)[0]:
        cells = counted or cell_len(text[begin:end])
        if used + cells > width and begin > start:
            if text[begin:end] == " ":
                rows.append((start, begin))
                start, used, chance, since = end, 0, -1, 0
                continue
            cut, rest = (chance, since) if chance > start else (begin, 0)
            rows.append((start, cut))
            start, used, chance, since = cut, rest, -1, 0
        if cells == 2 and begin > start:
            chance, since = begin, 0
        used += cells
        since += cells
        if cells == 2 or text[begin] == " ":
            chance, since = end, 0
    if start < len(text) or not rows:
        rows.append((start, len(text)))
    return rows


def rows_of_cells(text: str, width: int) -> list[Row]:
    """Breaks `text` (one line) wherever a row is full, as a terminal does. For code and output."""
    width = max(width, 2)
    if is_narrow(text):
        size = len(text)
        return [(at, min(at + width, size)) for at in range(0, size, width)] or [(0, 0)]
    rows: list[Row] = []
    start = used = 0
    for begin, end, counted in split_graphemes(text)[0]:
        # A joiner at the very beginning hides the width of what it stands before.
        cells = counted or cell_len(text[begin:end])
        if used + cells > width and begin > start:
            rows.append((start, begin))
            start, used = begin, 0
        used += cells
    rows.append((start, len(text)))
    return rows


def pieces(text: str, longest: int = LONGEST_PIECE) -> list[str]:
    """`text` cut into parts of at most `longest` characters, after a space where there is one."""
    if len(text) <= longest:
        return [text]
    parts: list[str] = []
    start = 0
    while len(text) - start > longest:
        end = text.rfind(" ", start + longest // 2, start + longest) + 1 or start + longest
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]
