"""Checks that a sed script neither runs programs nor reads or writes files."""

import re

from agent.permissions.options import NotUnderstoodError

_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n\[]|\\.|\[[^]/\n]*\])*/[IM]*|[+~]\d+)\s*")
_PLAIN_COMMANDS = re.compile(r"[=dDgGhHnNpPxz{}]|[qQlL]\s*\d*|[btT]\s*\w*|:\s*\w+")
_FLAGS = re.compile(r"[gpiImM\d]*")
_SEPARATOR = re.compile(r"[\s;]*")


def check_sed_script(script: str) -> None:
    """Reads the whole script.

    Raises:
        NotUnderstoodError: it has a command beyond editing and printing lines (`e`, `w`, `r`, a flag `e` or
            `w` of `s`), or one that is not understood.
    """
    position = _skip(script, 0)
    while position < len(script):
        position = _read_command(script, position)


def _skip(script: str, position: int) -> int:
    found = _SEPARATOR.match(script, position)
    return found.end() if found else position


def _read_command(script: str, position: int) -> int:
    for _ in range(2):
        address = _ADDRESS.match(script, position)
        if address is None:
            break
        position = address.end()
        if script[position : position + 1] != ",":
            break
        position += 1
    if negation := re.compile(r"\s*!\s*").match(script, position):
        position = negation.end()
    letter = script[position : position + 1]
    if letter in {"s", "y"}:
        return _read_substitution(script, position)
    plain = _PLAIN_COMMANDS.match(script, position)
    if plain is None:
        raise NotUnderstoodError(
            f"the sed command {script[position : position + 20]!r} is not in the harmless ones"
        )
    return _end(script, plain.end(), needs_separator=letter not in "{}")


def _read_substitution(script: str, position: int) -> int:
    delimiter = script[position + 1 : position + 2]
    if not delimiter or delimiter.isalnum() or delimiter in "\\\n \t;[]":
        raise NotUnderstoodError("the sed substitution is not understood")
    end = position + 2
    for _ in range(2):
        while script[end : end + 1] != delimiter:
            if end >= len(script) or script[end] == "\n":
                raise NotUnderstoodError("the sed substitution has no end")
            # a delimiter in brackets is read differently by different seds
            if script[end] == "[" and delimiter in script[end : script.find("]", end + 2) + 1]:
                raise NotUnderstoodError("the sed substitution is not understood")
            end += 2 if script[end] == "\\" else 1
        end += 1
    flags = _FLAGS.match(script, end)
    return _end(script, flags.end() if flags else end, needs_separator=True)


def _end(script: str, position: int, *, needs_separator: bool) -> int:
    following = re.compile(r"[ \t]*").match(script, position)
    position = following.end() if following else position
    if needs_separator and position < len(script) and script[position] not in ";\n}":
        raise NotUnderstoodError(f"the sed script is not understood at {script[position : position + 20]!r}")
    return _skip(script, position)
