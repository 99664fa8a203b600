"""How a model's indentation differs from a file's, and undoing that in new lines."""

from collections.abc import Callable, Sequence

_SPACE = " \t"


def indentation_change(old: Sequence[str], present: Sequence[str]) -> Callable[[str], str] | None:
    """A function that indents a new line the way the file does.

    Args:
        old: lines as the model wrote them.
        present: the same lines as they are in the file.

    Returns:
        `None` if the two differ in more than one regular way: the same added or missing on each
        line, or tabs on one side for a fixed number of spaces on the other.
    """
    pairs = [
        (indentation(mine), indentation(theirs))
        for mine, theirs in zip(old, present, strict=True)
        if mine.strip()
    ]
    if all(mine == theirs for mine, theirs in pairs):
        return lambda line: line
    mine, theirs = pairs[0]
    if theirs.endswith(mine):
        added = theirs[: len(theirs) - len(mine)]
        if all(added + mine == theirs for mine, theirs in pairs):
            return lambda line: added + line if line.strip() else line
    if mine.endswith(theirs):
        extra = mine[: len(mine) - len(theirs)]
        if all(mine == extra + theirs for mine, theirs in pairs):
            return lambda line: line.removeprefix(extra) if line.strip() else line
    return _between_tabs_and_spaces(pairs)


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_SPACE))]


def _between_tabs_and_spaces(pairs: Sequence[tuple[str, str]]) -> Callable[[str], str] | None:
    widths = {
        max(len(mine), len(theirs)) / min(len(mine), len(theirs))
        for mine, theirs in pairs
        if mine and theirs and mine != theirs
    }
    if len(widths) != 1 or not (width := widths.pop()).is_integer():
        return None
    spaces = " " * int(width)
    for written, stored in ((spaces, "\t"), ("\t", spaces)):
        if all(mine.replace(written, stored) == theirs for mine, theirs in pairs):
            return lambda line: indentation(line).replace(written, stored) + line[len(indentation(line)) :]
    return None
