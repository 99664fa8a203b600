"""Characters that look alike, so that a model writes one where the file has the other."""

import unicodedata

_ALIKE = {
    "'": "‘’‚‛′´ʹʼ＇",
    '"': "“”„‟″＂",
    "-": "‐‑‒–—―−﹣－",
    " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    "": "\u00ad\u200b\u200c\u200d\u2060\ufe0e\ufe0f\ufeff",
    "...": "…",
}


class LookAlikes:
    """Reduces text to one spelling of what looks the same."""

    def __init__(self) -> None:
        self._table = str.maketrans({mark: plain for plain, marks in _ALIKE.items() for mark in marks})

    def plain(self, text: str) -> str:
        """The text with simple quotes, dashes and spaces, and accents and widths in their usual form."""
        if text.isascii():
            return text
        return unicodedata.normalize("NFKC", text.translate(self._table))
