"""How a model's indentation differs from a file's, and undoing that in new lines."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

_SPACE = " \t"


def indentation_change(old: Sequence[str], present: Sequence[str]) -> Callable[[str], str] | None:
    """A function that indents a new line the way the file does.

    Args:
        old: lines as the model wrote them.
        present: the same lines as they are in the file.

    Returns:
        `None` if the file nests the lines in another way than the model: what the model indents alike
        must be indented alike there, and what it indents deeper must be deeper.
    """
    known: dict[str, str] = {}
    for mine, theirs in zip(old, present, strict=True):
        if mine.strip() and known.setdefault(indentation(mine), indentation(theirs)) != indentation(theirs):
            return None
    levels = sorted(known.items(), key=lambda level: len(level[0]))
    if not all(_is_deeper(upper, lower) for upper, lower in pairwise(levels)):
        return None
    continued = _shift(known) or _scale(known)

    def reindented(line: str) -> str:
        if not line.strip():
            return line
        mine = indentation(line)
        theirs = known.get(mine)
        return (continued(mine) if theirs is None else theirs) + line[len(mine) :]

    return reindented


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_SPACE))]


def _is_deeper(upper: tuple[str, str], lower: tuple[str, str]) -> bool:
    return all(
        deep.startswith(shallow) and deep != shallow for shallow, deep in zip(upper, lower, strict=True)
    )


def _shift(known: Mapping[str, str]) -> Callable[[str], str] | None:
    """The same text before every line, more or less of it."""
    mine, theirs = next(iter(known.items()))
    if theirs.endswith(mine):
        added = theirs[: len(theirs) - len(mine)]
        if all(added + mine == theirs for mine, theirs in known.items()):
            return lambda deeper: added + deeper
    if mine.endswith(theirs):
        extra = mine[: len(mine) - len(theirs)]
        if all(mine == extra + theirs for mine, theirs in known.items()):
            return lambda deeper: deeper.removeprefix(extra)
    return None


def _scale(known: Mapping[str, str]) -> Callable[[str], str]:
    """Other steps: tabs for spaces, four spaces for two."""
    levels = sorted({"": "", **known}.items(), key=lambda level: len(level[0]))
    (base, their_base), (first, their_first) = levels[0], levels[1]
    step, their_step = first[len(base) :], their_first[len(their_base) :]

    def continued(mine: str) -> str:
        count, rest = divmod(len(mine) - len(base), len(step))
        if count >= 0 and rest == 0 and mine == base + step * count:
            return their_base + their_step * count
        known_part, their_part = next(level for level in reversed(levels) if mine.startswith(level[0]))
        return their_part + mine[len(known_part) :]

    return continued
