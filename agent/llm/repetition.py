"""Telling a reply that goes in circles from one that is merely long."""

_TAIL = 48
_WINDOW = 2400
_REPEATS = 16
# The same passage of at most this length, three times in a row to the letter.
_LONGEST_PASSAGE = 800


def goes_in_circles(text: str) -> bool:
    """Whether the end of `text` is the same few lines over and over, or the same passage three times.

    Sixteen occurrences of the last 48 characters within the last 2,400 do not happen in code or prose
    that people write, except in large literal tables.
    """
    if len(text) < _WINDOW:
        return False
    window = text[-_WINDOW:]
    tail = window[-_TAIL:]
    if window.count(tail) >= _REPEATS:
        return True
    period = _WINDOW - _TAIL - window.rfind(tail, 0, -1)
    return period <= _LONGEST_PASSAGE and window[period:] == window[:-period]
