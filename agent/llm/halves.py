"""Characters that came in two halves.

Servers that count text as UTF-16 does may cut an emoji in two, each half in a piece of its own. Apart they
have no UTF-8 form and would go back as question marks, until a session file brings them together again.
"""

from collections.abc import Iterable


def joined(pieces: Iterable[str]) -> str:
    """The pieces as one text, in which halves that stand side by side are the character that they make."""
    text = "".join(pieces)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text
