"""Long lines on a narrow terminal: broken between words, the rest hanging under the text of the first."""

import shutil
import textwrap
from typing import TextIO

_NARROWEST = 40


def terminal_width(stream: TextIO) -> int:
    """The columns of the terminal that `stream` goes to; 0 where it goes anywhere else.

    What another program reads, or a file keeps, stays one line for each fact, however long.
    """
    return max(_NARROWEST, shutil.get_terminal_size().columns) if stream.isatty() else 0


def wrapped(line: str, width: int, *, hang: int = 0, begin: int = 0) -> str:
    """`line` in pieces of at most `width` columns, all but the first indented by `hang` columns.

    Words are never broken: a path or a command can be copied, even where it is wider than the terminal.
    A `width` of 0 leaves the line alone. `begin` columns of the first line are taken already.
    """
    if not width or begin + len(line) <= width:
        return line
    filled = textwrap.fill(
        line,
        width,
        initial_indent=" " * begin,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled[begin:]
