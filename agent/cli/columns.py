"""Rows of text as columns of a terminal, where a character may take two."""

import unicodedata
from collections.abc import Sequence


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, every column as wide as its widest text. All rows have as many texts."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(_padded, row, widths)).rstrip() for row in rows]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def cells(text: str) -> int:
    """The columns that a line takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_cells_of_one, text))


def fitted(text: str, width: int) -> str:
    """`text` in at most `width` columns, with a mark where it was cut."""
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def _cells_of_one(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
