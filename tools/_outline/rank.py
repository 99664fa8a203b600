"""Which files and which of their definitions matter most.

A file that uses a name points to the files that define it; what many and important files point to is
important (as in Brin and Page's PageRank). Names that many files define, such as `run`, say little.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tools._outline.sources import Source

_MOST_DEFINERS = 8
_ROUNDS = 12
_DAMPING = 0.85
_TEST = re.compile(r"(^|/)(tests?|testing|spec|__tests__)(/|$)|(^|/)test_|_test\.|\.(test|spec)\.")
_TEST_SHARE = 0.3
_TELLING = re.compile(r"^[A-Z]|[a-z0-9]_[a-z0-9]|[a-z][A-Z]|^\w{10,}$")
_SHARE_OF_PLAIN_NAMES = 0.1
"""`name` or `append` are used for something else more often than not."""
_MOST_CHANGED = 0.01
"""Share of the files. In a project of less than a hundred each change counts."""
_WORDS = re.compile(r"[a-z]+|\d+", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Ranking:
    """`files` is the weight of each file, `uses` of each name: by how many files, and how telling it is.

    `stamps` are those of the files that were weighed.
    """

    files: Mapping[str, float]
    uses: Mapping[str, float]
    stamps: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def still_holds(self, sources: Mapping[str, Source]) -> bool:
        """Whether so few of `sources` are new, gone or changed that the weights are about the same."""
        every = self.stamps.keys() | sources.keys()
        changed = sum(name not in sources or self.stamps.get(name) != sources[name].stamp for name in every)
        return changed <= len(every) * _MOST_CHANGED


def rank(sources: Mapping[str, Source]) -> Ranking:
    """Weighs files by who uses what they define."""
    definers: dict[str, set[str]] = defaultdict(set)
    for name, source in sources.items():
        for defined in source.names.split("\n"):
            if len(defined) > 2:
                definers[defined].add(name)
    weights = {word: 1.0 if _TELLING.search(word) else _SHARE_OF_PLAIN_NAMES for word in definers}
    uses: dict[str, float] = defaultdict(float)
    edges: dict[str, dict[str, float]] = {}
    for name, source in sources.items():
        targets: dict[str, float] = defaultdict(float)
        for word in filter(definers.__contains__, source.words.split(" ")):
            owners = definers[word]
            if name in owners:
                continue
            weight = weights[word]
            uses[word] += weight
            if len(owners) <= _MOST_DEFINERS:
                for owner in owners:
                    targets[owner] += weight / len(owners)
        edges[name] = targets
    return Ranking(_flowed(edges), uses, {name: source.stamp for name, source in sources.items()})


def _flowed(edges: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    count = len(edges)
    if not count:
        return {}
    weights = dict.fromkeys(edges, 1 / count)
    totals = {name: sum(targets.values()) for name, targets in edges.items()}
    for _ in range(_ROUNDS):
        lost = sum(weights[name] for name, total in totals.items() if not total)
        base = (1 - _DAMPING) / count + _DAMPING * lost / count
        flowed = dict.fromkeys(edges, base)
        for name, targets in edges.items():
            share = _DAMPING * weights[name] / totals[name] if totals[name] else 0.0
            for target, weight in targets.items():
                flowed[target] += share * weight
        weights = flowed
    return weights


def share_of(name: str, terms: Iterable[str]) -> float:
    """Tests use what is looked for, and are seldom what is looked for."""
    return _TEST_SHARE if _TEST.search(name) and "test" not in terms else 1.0


def terms_of(text: str) -> tuple[str, ...]:
    """The words of a question, split as names are: `parseHeader` and `parse_header` are the same two."""
    parts = (part.lower() for part in _WORDS.findall(_CAMEL.sub(" ", text)))
    return tuple(dict.fromkeys(_stem(part) for part in parts if len(part) > 2))


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def matches(sources: Mapping[str, Source], terms: Sequence[str]) -> dict[str, float]:
    """How well each file fits the terms, without those that do not; rare terms count more."""
    if not terms:
        return {}
    hits: dict[str, dict[str, float]] = {term: {} for term in terms}
    for name, source in sources.items():
        path, names, words = name.lower(), source.names.lower(), source.words.lower()
        for term in terms:
            defined = sum(term in one for one in names.split("\n")) if term in names else 0
            fit = 3.0 * (term in path) + 2.0 * math.log2(1 + defined) + (term in words)
            if fit:
                hits[term][name] = fit
    found: dict[str, float] = defaultdict(float)
    for fits in hits.values():
        rarity = math.log(1 + len(sources) / (1 + len(fits)))
        for name, fit in fits.items():
            found[name] += rarity * fit
    return found
