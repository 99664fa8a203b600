"""Small figures about a text."""

import re


def words(text: str) -> list[str]:
    """The words of a text in order, in lower case, without punctuation."""
    return re.findall(r"[a-z0-9']+", text.lower())


def most_common(text: str, count: int) -> list[str]:
    """The `count` most frequent words, the most frequent first; ties in order of the alphabet."""
    found = words(text)
    return sorted(set(found), key=lambda word: (-found.count(word), word))[:count]
