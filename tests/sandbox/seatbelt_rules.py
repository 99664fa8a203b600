"""Reads a profile for `sandbox-exec` and decides as macOS does: the last rule that matches wins."""

from dataclasses import dataclass
from pathlib import PurePosixPath

Expression = str | list["Expression"]
_QUOTE = '"'
_FILTERS = ("subpath", "literal", "remote", "target")


class NoProfileError(ValueError):
    """The text cannot be read, or has words in it that are not known here."""


def expressions(text: str) -> list[Expression]:
    """The lists of a text. A string begins with its quotation mark here and has none at its end."""
    found: list[Expression] = []
    open_lists = [found]
    position = 0
    while position < len(text):
        sign = text[position]
        if sign == "(":
            open_lists.append([])
        elif sign == ")":
            closed = open_lists.pop()
            if not open_lists:
                raise NoProfileError("a list is closed that was not opened")
            open_lists[-1].append(closed)
        elif sign == _QUOTE:
            word, position = _string(text, position)
            open_lists[-1].append(word)
        elif not sign.isspace():
            start = position
            while position + 1 < len(text) and text[position + 1] not in "() \n\t":
                position += 1
            open_lists[-1].append(text[start : position + 1])
        position += 1
    if len(open_lists) != 1:
        raise NoProfileError("a list is not closed")
    return found


def _string(text: str, start: int) -> tuple[str, int]:
    """The string that begins at `start`, with its first mark, and where its last mark is."""
    word, position = _QUOTE, start + 1
    while position < len(text) and text[position] != _QUOTE:
        position += text[position] == "\\"
        word += text[position : position + 1]
        position += 1
    if position >= len(text):
        raise NoProfileError("a string is not closed")
    return word, position


@dataclass(frozen=True)
class Rule:
    allows: bool
    operations: tuple[str, ...]
    filters: tuple[tuple[str, str], ...]

    def is_about(self, operation: str, path: str) -> bool:
        named = any(_covers(pattern, operation) for pattern in self.operations)
        return named and (not self.filters or any(_matches(kind, word, path) for kind, word in self.filters))


class Profile:
    """Raises NoProfileError where the text has anything that is not known here."""

    def __init__(self, text: str) -> None:
        first, *others = expressions(text)
        if first != ["version", "1"]:
            raise NoProfileError("a profile begins with its version")
        self._rules = [_rule(expression) for expression in others]

    def allows(self, operation: str, path: str = "") -> bool:
        """Whether something may be done; `path` is real, and may be that of a socket."""
        decisions = [rule.allows for rule in self._rules if rule.is_about(operation, path)]
        return decisions[-1]

    def can_read(self, path: str) -> bool:
        return self.allows("file-read-data", path)

    def can_write(self, path: str) -> bool:
        """Whether a file can come to be there and be written; it says nothing about removing it."""
        return self.allows("file-write-create", path) and self.allows("file-write-data", path)

    def can_move(self, path: str, target: str) -> bool:
        return self.allows("file-write-unlink", path) and self.allows("file-write-create", target)


def _rule(expression: Expression) -> Rule:
    match expression:
        case ["allow" | "deny" as verdict, *words]:
            operations = tuple(word for word in words if isinstance(word, str))
            filters = tuple(_filter(word) for word in words if isinstance(word, list))
            return Rule(verdict == "allow", operations, filters)
    raise NoProfileError(f"no rule: {expression}")


def _filter(expression: list[Expression]) -> tuple[str, str]:
    match expression:
        case [str(kind), str(word)] if kind in _FILTERS:
            return kind, word.removeprefix(_QUOTE)
    raise NoProfileError(f"no condition: {expression}")


def _covers(pattern: str, operation: str) -> bool:
    if pattern == "default":
        return True
    return operation.startswith(pattern[:-1]) if pattern.endswith("*") else pattern == operation


def _matches(kind: str, word: str, path: str) -> bool:
    if kind == "subpath":
        return bool(path) and PurePosixPath(path).is_relative_to(word)
    if kind == "literal":
        return path == word
    if kind == "remote":
        return word == "unix-socket" and path.startswith("/")
    return True
