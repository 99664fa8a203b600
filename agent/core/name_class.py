"""`[abc]` in a pattern for file names. Frameworks for the web have folders that are really called `[id]`."""

import re


def either(written: str) -> str:
    """A regular expression for one of the characters in the brackets, or for what is written with brackets.

    Args:
        written: from `[` to `]`; `!` or `^` behind the first bracket stands for any other character but `/`.
    """
    inner = written[1:-1]
    negated = inner[:1] in ("!", "^")
    characters = re.sub(r"([\\^\[\]&~|])", r"\\\1", inner[negated:])
    literal = re.escape(written)
    try:
        one_of_them = re.compile(f"[{'^/' if negated else ''}{characters}]").pattern
    except re.error:  # `[user-id]` has no characters from r to i
        return literal
    return f"(?:{one_of_them}|{literal})"
