"""Reads command options against a list of known ones; an unknown option is an error, never a guess."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.permissions.words import Word, names, plain_word


class NotUnderstoodError(Exception):
    """Why a command's arguments cannot be judged."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a program that may be used.

    `flags` and `values` are single letters without and with a value, `long_flags` and `long_values` the same
    for long options (a long flag may still carry an optional `=value`). `numbers`: `-5` is an option.
    """

    flags: str = ""
    values: str = ""
    long_flags: frozenset[str] = frozenset()
    long_values: frozenset[str] = frozenset()
    numbers: bool = False


@dataclass(slots=True)
class Parsed:
    """`given` maps an option's name to its values; `consumed` counts the words up to the first operand.

    `separate_values` are the values that were words of their own.
    """

    given: dict[str, list[Word]] = field(default_factory=dict)
    operands: list[Word] = field(default_factory=list)
    separate_values: list[Word] = field(default_factory=list)
    consumed: int = 0


def options(
    flags: str = "", values: str = "", long_flags: str = "", long_values: str = "", *, numbers: bool = False
) -> Options:
    return Options(flags, values, names(long_flags), names(long_values), numbers)


def parse(arguments: Sequence[Word], known: Options, *, stop_at_operand: bool = False) -> Parsed:
    """Splits `arguments` (without the program's name) into options and operands.

    Raises:
        NotUnderstoodError: an option is not known or a word's text is not known before the shell runs.
    """
    parsed = Parsed()
    position = 0
    while position < len(arguments):
        word = arguments[position]
        text = _text_of(word)
        if text == "--":
            parsed.consumed = position + 1
            parsed.operands += arguments[position + 1 :]
            break
        if not text.startswith("-") or text == "-":
            if stop_at_operand:
                parsed.operands += arguments[position:]
                break
            parsed.operands.append(word)
            position += 1
            continue
        following = arguments[position + 1] if position + 1 < len(arguments) else None
        position += 1 + _read_option(text, following, known, parsed)
        parsed.consumed = position
    for operand in parsed.operands:
        if not stop_at_operand:
            _text_of(operand)
    return parsed


def _text_of(word: Word) -> str:
    if word.pipe:
        return "/dev/fd/63"
    if word.literal is None:
        raise NotUnderstoodError(f"what {word.source} becomes is only known when it runs")
    return word.literal


def _read_option(text: str, following: Word | None, known: Options, parsed: Parsed) -> int:
    """Notes one option word and returns how many further words it took."""
    if text.startswith("--"):
        name, has_value, value = text[2:].partition("=")
        if name in known.long_values and not has_value:
            return _take_value(text, name, following, parsed)
        if name in known.long_values or name in known.long_flags:
            parsed.given.setdefault(name, []).append(plain_word(value))
            return 0
        raise NotUnderstoodError(f"the option --{name} is not in the list of harmless ones")
    if known.numbers and text[1:].isdigit():
        return 0
    for index, letter in enumerate(text[1:], start=1):
        if letter in known.flags:
            parsed.given.setdefault(letter, []).append(plain_word(""))
        elif letter in known.values:
            if text[index + 1 :]:
                parsed.given.setdefault(letter, []).append(plain_word(text[index + 1 :]))
                return 0
            return _take_value(text, letter, following, parsed)
        elif not (known.numbers and letter.isdigit()):
            raise NotUnderstoodError(f"the option -{letter} is not in the list of harmless ones")
    return 0


def _take_value(text: str, name: str, following: Word | None, parsed: Parsed) -> int:
    if following is None:
        raise NotUnderstoodError(f"the option {text} has no value")
    _text_of(following)
    parsed.given.setdefault(name, []).append(following)
    parsed.separate_values.append(following)
    return 1
