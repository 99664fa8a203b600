"""Finding names by a few of their letters."""

import re
from collections.abc import Sequence

MOST_CANDIDATES = 2_000
"""How many fitting names are ranked; more would make a keystroke in a huge repository felt."""


def best(query: str, names: Sequence[str], limit: int) -> list[str]:
    """Up to `limit` of `names` that have the letters of `query` in this order, the best first.

    Letters next to each other, at the start of a word and in the last part of a path count more. Without a
    query the first names are given as they come.
    """
    if not query:
        return list(names[:limit])
    wanted = query.lower()
    found = [name for name in names if wanted in name.lower()][:MOST_CANDIDATES]
    if len(found) < limit:
        known = set(found)
        # Each letter is looked for once, from the left: a name that does not fit costs no second try.
        steps = (f"[^{re.escape(letter)}]*+{re.escape(letter)}" for letter in wanted)
        fits = re.compile("".join(steps), re.IGNORECASE).match
        for name in names:
            if fits(name) and name not in known:
                found.append(name)
                if len(found) >= MOST_CANDIDATES:
                    break
    return sorted(found, key=lambda name: (-score(wanted, name), len(name), name))[:limit]


def score(query: str, name: str) -> float:
    """How well `name` fits; higher is better. `query` is in lower case and fits."""
    lowered = name.lower()
    leaf = lowered.rstrip("/").rpartition("/")[2]
    if query in (leaf, lowered):
        return 100.0
    if leaf.startswith(query):
        return 80.0
    if lowered.startswith(query):
        return 70.0
    place = leaf.find(query)
    if place >= 0:
        return 60.0 if not leaf[place - 1].isalnum() else 50.0
    if query in lowered:
        return 40.0
    return 20.0 * len(query) / max(_span(query, lowered), 1)


def positions(query: str, name: str) -> list[int]:
    """Where the letters of `query` stand in `name`, for showing them."""
    lowered, wanted = name.lower(), query.lower()
    if len(lowered) != len(name):  # a letter whose small form has another length
        return []
    start = lowered.rfind(wanted)
    if start >= 0:
        return list(range(start, start + len(wanted)))
    found: list[int] = []
    at = 0
    for letter in wanted:
        at = lowered.find(letter, at)
        if at < 0:
            return []
        found.append(at)
        at += 1
    return found


def _span(query: str, name: str) -> int:
    first = name.find(query[0])
    at = first
    for letter in query[1:]:
        at = name.find(letter, at + 1)
        if at < 0:
            return len(name)
    return at - first + 1
