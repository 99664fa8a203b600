"""An outline as the model reads it, within a budget."""

from collections.abc import Iterator, Mapping, Sequence

from tools._outline.rank import Ranking
from tools._outline.sources import Definition, Source

CHARACTERS_PER_TOKEN = 3
"""Fewer than any tokenizer needs on average for source text, so that the budget holds."""
_LINES_OF_FIRST = 8
_LINES_OF_OTHERS = 4
_FIRST_FILES = 3


def whole(name: str, source: Source, budget: int) -> str:
    """All definitions of one file; with more than fits, types and what stands in no type come first."""
    definitions = source.definitions
    deepest = max((one.depth for one in definitions), default=0)
    for depth in range(deepest, -1, -1):
        lines = [_line(one) for one in definitions if one.depth <= depth]
        if _size([name, *lines]) <= budget * CHARACTERS_PER_TOKEN or not depth:
            break
    fitting = _fitting([name, *lines], budget)
    return "\n".join(fitting) + _rest(len(definitions) - len(fitting) + 1, "definitions")


def ranked(
    names: Sequence[str],
    sources: Mapping[str, Source],
    ranking: Ranking,
    terms: Sequence[str],
    budget: int,
) -> str:
    """The files in their order, each with the definitions that count most, as far as the budget goes."""
    room = budget * CHARACTERS_PER_TOKEN
    blocks: list[str] = []
    for number, name in enumerate(names):
        most = _LINES_OF_FIRST if number < _FIRST_FILES else _LINES_OF_OTHERS
        block = "\n".join([name, *_chosen(sources[name], ranking, terms, most)])
        if len(block) + 1 > room:
            if room > len(name) and not blocks:
                blocks.append("\n".join(_fitting(block.split("\n"), budget)))
            break
        blocks.append(block)
        room -= len(block) + 1
    return "\n".join(blocks) + _rest(len(names) - len(blocks), "files")


def _chosen(source: Source, ranking: Ranking, terms: Sequence[str], most: int) -> Iterator[str]:
    def weight(one: Definition) -> float:
        asked = sum(term in one.name.lower() for term in terms)
        private = one.name.startswith("_")
        return 100.0 * asked + (ranking.uses.get(one.name, 0) + 1) / (2 if private else 1) / (1 + one.depth)

    definitions = source.definitions
    best = sorted(definitions, key=weight, reverse=True)[:most]
    for one in sorted(best, key=lambda one: (one.line, one.depth)):
        yield _line(one)
    if len(definitions) > len(best):
        yield f"  … {len(definitions) - len(best)} more"


def _line(one: Definition) -> str:
    return f"{'  ' * one.depth}  {one.line}: {one.signature}"


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _fitting(lines: Sequence[str], budget: int) -> list[str]:
    room, kept = budget * CHARACTERS_PER_TOKEN, []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def _rest(count: int, what: str) -> str:
    return f"\n({count} more {what})" if count > 0 else ""
