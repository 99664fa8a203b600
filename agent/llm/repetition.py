"""Telling a reply that goes in circles from one that is merely long."""

_TAIL = 48
_WINDOW = 2400
_REPEATS = 16


def goes_in_circles(text: str) -> bool:
    """Whether the end of `text` is the same few lines over and over.

    Sixteen occurrences of the last 48 characters within the last 2,400 do not happen in code or prose
    that people write, except in large literal tables.
    """
    if len(text) < _WINDOW:
        return False
    window = text[-_WINDOW:]
    return window.count(text[-_TAIL:]) >= _REPEATS
