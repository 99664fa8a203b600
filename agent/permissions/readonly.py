"""The built-in list of commands that only read, with the options that keep them so."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.permissions.options import NotUnderstoodError, Parsed, options, parse
from agent.permissions.readonly_git import read_only_git
from agent.permissions.readonly_tables import (
    ANY_ARGUMENTS,
    FIND_FILES,
    FIND_FLAGS,
    FIND_VALUES,
    GREP,
    JQ,
    ONLY_VERSION,
    READING_FILES,
    RG,
    SED,
    UNIQ,
    WITHOUT_FILES,
)
from agent.permissions.sed import check_sed_script
from agent.permissions.words import Word

Words = Sequence[Word]


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """A command that only reads. `paths` are the words that it takes for files."""

    paths: tuple[Word, ...] = ()


def read_only(words: Words) -> ReadOnly:
    """Judges a command, its name first, as one that only reads.

    Raises:
        NotUnderstoodError: it does more than reading, or may.
    """
    name = words[0].literal or ""
    arguments = words[1:]
    special = _SPECIAL.get(name)
    if special is not None:
        return special(arguments)
    if name in ANY_ARGUMENTS:
        return ReadOnly(tuple(word for word in arguments if word.glob is not None))
    if name in READING_FILES:
        parsed = parse(arguments, READING_FILES[name])
        paths = parsed.operands
        return ReadOnly(tuple(paths) if name != "which" else ())
    if name in WITHOUT_FILES:
        parsed = parse(arguments, WITHOUT_FILES[name])
        if name == "date" and any(not (word.literal or "").startswith("+") for word in parsed.operands):
            raise NotUnderstoodError("date can set the clock")
        return ReadOnly()
    if name in ONLY_VERSION and [word.literal for word in arguments] in (["--version"], ["-V"]):
        if name in {"bash", "perl"} and arguments[0].literal == "-V":
            raise NotUnderstoodError(f"{name} -V is not in the list")
        return ReadOnly()
    raise NotUnderstoodError(f"{name or words[0].source} is not in the list of commands that only read")


def _grep(arguments: Words) -> ReadOnly:
    parsed = parse(arguments, GREP)
    return _pattern_then_files(parsed, "e", "regexp")


def _rg(arguments: Words) -> ReadOnly:
    parsed = parse(arguments, RG)
    if {"files", "type-list"} & parsed.given.keys():
        return ReadOnly(tuple(parsed.operands))
    return _pattern_then_files(parsed, "e", "regexp")


def _pattern_then_files(parsed: Parsed, *pattern_options: str) -> ReadOnly:
    has_pattern = any(option in parsed.given for option in pattern_options)
    return ReadOnly(tuple(parsed.operands if has_pattern else parsed.operands[1:]))


def _sed(arguments: Words) -> ReadOnly:
    parsed = parse(arguments, SED)
    scripts = parsed.given.get("e", []) + parsed.given.get("expression", [])
    operands = parsed.operands
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    if any(script.literal is None for script in scripts):
        raise NotUnderstoodError("the sed script is only known when it runs")
    # sed joins its scripts by newlines
    check_sed_script("\n".join(script.literal or "" for script in scripts))
    return ReadOnly(tuple(operands))


def _uniq(arguments: Words) -> ReadOnly:
    parsed = parse(arguments, UNIQ)
    if len(parsed.operands) > 1:
        raise NotUnderstoodError("uniq writes to its second file")
    return ReadOnly(tuple(parsed.operands))


def _printf(arguments: Words) -> ReadOnly:
    first = arguments[0] if arguments else None
    if (
        first is not None
        and (first.literal is None or first.literal.startswith("-"))
        and first.source != "--"
    ):
        raise NotUnderstoodError("printf with an option can set variables")
    return ReadOnly(tuple(word for word in arguments if word.glob is not None))


def _jq(arguments: Words) -> ReadOnly:
    parsed = parse(arguments, JQ)
    program = (parsed.operands[0].literal or "") if parsed.operands else "."
    if re.search(r"\benv\b|\$ENV|\bimport\b|\binclude\b|\binput_filename\b|\bmodulemeta\b", program):
        raise NotUnderstoodError("the jq program reads more than its input")
    return ReadOnly(tuple(parsed.operands[1:]))


def _find(arguments: Words) -> ReadOnly:
    """`-exec` and its like are cut out before, because the commands in them are judged on their own."""
    paths: list[Word] = []
    position = 0
    while position < len(arguments) and not (arguments[position].value or "").startswith(
        ("-", "(", "!", ",")
    ):
        paths.append(arguments[position])
        position += 1
    while position < len(arguments):
        word = arguments[position]
        text = word.literal
        if text in {"-P"} | FIND_FLAGS:
            position += 1
        elif text in FIND_VALUES | FIND_FILES and position + 1 < len(arguments):
            if text in FIND_FILES:
                paths.append(arguments[position + 1])
            position += 2
        elif text in {"-exec", "-execdir"}:
            position += 1
            while position < len(arguments) and arguments[position].value not in {";", "+"}:
                position += 1
            position += 1
        else:
            raise NotUnderstoodError(f"{word.source} is not in the list of harmless parts of find")
    return ReadOnly(tuple(paths))


def _test(arguments: Words) -> ReadOnly:
    if any(word.value is None or word.value in {"-v", "-R", "-o", "-t"} for word in arguments):
        raise NotUnderstoodError("the test may evaluate text as code")
    return ReadOnly()


def _read(arguments: Words) -> ReadOnly:
    parsed = parse(arguments, options("rs", "dnNt"))
    _only_own_variables(parsed.operands)
    return ReadOnly()


def _unset(arguments: Words) -> ReadOnly:
    _only_own_variables(arguments)
    return ReadOnly()


def _only_own_variables(names: Words) -> None:
    for word in names:
        if not re.fullmatch(r"[a-z_][a-z_0-9]*", word.literal or ""):
            raise NotUnderstoodError(f"{word.source} may be a variable that other programs use")


def _strings(arguments: Words) -> ReadOnly:
    if any((word.literal or "").startswith("@") for word in arguments):
        raise NotUnderstoodError("it takes its arguments from a file behind @ and shows what is in there")
    return ReadOnly(tuple(parse(arguments, READING_FILES["strings"]).operands))


def _export(arguments: Words) -> ReadOnly:
    """The assignments themselves are judged apart."""
    if not arguments:
        raise NotUnderstoodError("with nothing to set it shows all variables, those with secrets too")
    if any(not re.match(r"[A-Za-z_][A-Za-z_0-9]*(\+?=|$)", word.source) for word in arguments):
        raise NotUnderstoodError("its options are not in the list of harmless ones")
    return ReadOnly()


def _set(arguments: Words) -> ReadOnly:
    texts = [word.literal or "?" for word in arguments]
    if not texts or any(
        not re.fullmatch(r"[-+][eux]*o?|pipefail|errexit|nounset|xtrace", text) for text in texts
    ):
        raise NotUnderstoodError("set changes how the shell works")
    return ReadOnly()


def _leave(arguments: Words) -> ReadOnly:
    if any(not re.fullmatch(r"\d+", word.literal or "") for word in arguments):
        raise NotUnderstoodError("its argument is not a number")
    return ReadOnly()


def _pwd(arguments: Words) -> ReadOnly:
    parse(arguments, options("LP"))
    return ReadOnly()


def _cd(arguments: Words) -> ReadOnly:
    """Where it leads is judged apart, see `agent.permissions.folders`."""
    return ReadOnly()


def _command_query(arguments: Words) -> ReadOnly:
    parsed = parse(arguments, options("pvV"), stop_at_operand=True)
    if "v" not in parsed.given and "V" not in parsed.given:
        raise NotUnderstoodError("it starts another command")
    return ReadOnly()


def _go(arguments: Words) -> ReadOnly:
    if [word.literal for word in arguments] != ["version"]:
        raise NotUnderstoodError("go does more than reading")
    return ReadOnly()


def _git(arguments: Words) -> ReadOnly:
    return ReadOnly(read_only_git(arguments))


_SPECIAL: dict[str, Callable[[Words], ReadOnly]] = {
    "[": _test,
    "cd": _cd,
    "command": _command_query,
    "find": _find,
    "git": _git,
    "go": _go,
    "jq": _jq,
    "popd": _cd,
    "printf": _printf,
    "pushd": _cd,
    "pwd": _pwd,
    "read": _read,
    "rg": _rg,
    "sed": _sed,
    "set": _set,
    "strings": _strings,
    "test": _test,
    "uniq": _uniq,
    "unset": _unset,
    **dict.fromkeys(("grep", "egrep", "fgrep"), _grep),
    **dict.fromkeys(("export", "declare", "local", "readonly", "typeset"), _export),
    **dict.fromkeys(("exit", "return", "break", "continue", "shift"), _leave),
}
