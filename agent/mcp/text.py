"""Text from servers of somebody else, made fit for a prompt and for a terminal."""

import re
import unicodedata

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_KEPT = "\n\t"


def one_line(text: str, limit: int) -> str:
    """`text` in one line of at most `limit` characters, without what a terminal would act on or hide."""
    # Cut first: somebody's megabyte of blanks must not be walked through.
    plain = " ".join(visible(text[: limit * 20]).split())
    return plain if len(plain) <= limit else plain[: limit - 1].rstrip() + "…"


def visible(text: str) -> str:
    """`text` without control, bidirectional and other invisible characters; line ends and tabs stay."""
    if text.isprintable():
        return text
    plain = text.replace("\r\n", "\n")
    return "".join(char for char in plain if char in _KEPT or not _is_hidden(char))


def plain_name(text: str) -> str:
    """`text` with everything replaced that does not belong into the name of a tool or server."""
    return _NOT_IN_A_NAME.sub("_", text)


def _is_hidden(char: str) -> bool:
    # Cc control, Cf format (bidirectional marks, tags, zero width), Cs surrogates, Co private, Cn unassigned
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn")
