"""File name patterns with one meaning wherever they are used."""

import re

from agent.core.name_class import either

_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]/]*\]|\{|\}|,|.", re.DOTALL)


def name_matcher(pattern: str) -> re.Pattern[str]:
    """A regular expression for `fullmatch` on a path with `/`, relative to where the pattern starts.

    `*` and `?` stay within one name, `**` crosses folders, `{a,b}` and `[abc]` choose; `[abc]` is also a
    name that has these brackets, as folders of web frameworks do. A pattern without `/` fits a name in any
    folder, one that ends in `/` all files below.

    Raises:
        ValueError: the pattern is empty or has unbalanced braces or brackets.
    """
    pattern = pattern.strip().removeprefix("./")
    if not pattern.strip("/"):
        raise ValueError("empty pattern")
    if pattern.endswith("/"):
        pattern += "**"
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    depth = 0
    parts: list[str] = []
    for piece in _PIECE.findall(pattern.lstrip("/")):
        depth += (piece == "{") - (piece == "}")
        if depth < 0:
            raise ValueError("unbalanced }")
        parts.append(_translated(piece, depth > 0))
    if depth:
        raise ValueError("unbalanced {")
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise ValueError(str(error)) from None


def _translated(piece: str, in_braces: bool) -> str:
    if piece.startswith("[") and len(piece) > 1:
        return either(piece)
    fixed = {"**/": r"(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")"}
    if piece == "," and in_braces:
        return "|"
    return fixed.get(piece, re.escape(piece))
