"""Text from servers of somebody else, made fit for a prompt and for a terminal."""

import re

from agent.core import outside_text

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def one_line(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, without what a terminal would act on or hide."""
    # Cut first: somebody's megabyte of blanks must not be walked through.
    return outside_text.one_line(text[: limit * 20], limit)


def plain_name(text: str) -> str:
    """`text` with everything replaced that does not belong into the name of a tool or server."""
    return _NOT_IN_A_NAME.sub("_", text)
