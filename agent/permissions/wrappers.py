"""Programs whose job is to start other programs: finds the command inside."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.permissions.options import NotUnderstoodError, Options, options, parse
from agent.permissions.words import Assignment, Word, names, plain_word

Words = tuple[Word, ...]

SHELLS = frozenset({"sh", "bash", "dash"})
OTHER_SHELLS = names("zsh ksh mksh ash fish csh tcsh rbash yash nu pwsh xonsh at batch")
# these have no effect of their own: the command inside decides
TRANSPARENT = SHELLS | names("env nice nohup time timeout xargs stdbuf setsid command exec builtin eval")

_ASSIGNMENT = re.compile(r"([^=]*?)\+?=(.*)", re.DOTALL)  # env takes any name
_WRAPPER_OPTIONS = {
    "nice": options("", "n", "", "adjustment", numbers=True),
    "nohup": options(),
    "time": options("p"),
    "timeout": options("v", "ks", "foreground preserve-status verbose", "kill-after signal"),
    "stdbuf": options("", "ioe", "", "input output error"),
    "setsid": options("cfw", "", "ctty fork wait"),
    "exec": options("cl", "a"),
    "builtin": options(),
    "sudo": options("AbEHnPSkK", "ughpCrtT", "non-interactive preserve-env", "user group"),
    "doas": options("n", "u"),
    "env": options("i0v", "uC", "ignore-environment null debug", "unset chdir"),
    "command": options("pvV"),
    "xargs": options(
        "0rtpx",
        "nPLsIdEa",
        "null no-run-if-empty verbose interactive exit replace max-lines eof",
        "max-args max-procs max-chars delimiter arg-file",
    ),
}  # fmt: skip
_SHELL_OPTIONS = options("abefhiklmnprtuvxBCEHPTs", "oO", "login norc noprofile posix restricted verbose")
_GIT_OPTIONS = options(
    "pP", "Cc",
    "no-pager paginate bare no-replace-objects literal-pathspecs no-optional-locks exec-path version help",
    "git-dir work-tree namespace config-env super-prefix",
)  # fmt: skip


_FOLDER_OF_EACH_FILE = Word(None, "$(dirname FILE)")


@dataclass
class Opened:
    """What a wrapper starts: commands as words and texts that a shell reads. `reads` are files of its own."""

    inner: list[Words] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    folder: Word | None = None
    reads: list[Word] = field(default_factory=list)
    inner_at: int = 1
    doubts: tuple[str, ...] = ()


def unwrap(words: Words, stdin: str | None) -> Opened:
    """Finds what a command starts besides itself.

    Args:
        words: the command, its name first.
        stdin: the text on its standard input where that is known.
    """
    name = words[0].literal
    if name is None:
        return Opened(doubts=(f"the program's name in {words[0].source} is only known when it runs",))
    program = name.rsplit("/", 1)[-1]
    opener = _OPENERS.get(program)
    try:
        if program in SHELLS:
            return _shell(words, stdin)
        if opener is not None:
            return opener(words)
    except NotUnderstoodError as problem:
        return Opened(doubts=(f"{program}: {problem}",))
    if program in OTHER_SHELLS:
        return Opened(doubts=(f"what {program} runs is not known",))
    if program in _EVALUATORS and any(_HIDDEN_COMMAND.search(word.value or word.source) for word in words):
        return Opened(doubts=(f"{program} may evaluate text as code",))
    if program in _STATE_CHANGERS:
        return Opened(doubts=(f"{program} can change what later commands mean",))
    return Opened()


_STATE_CHANGERS = names(
    "alias unalias hash enable source . shopt bind complete compgen compopt fc let mapfile readarray"
    " coproc history caller autoload"
)


# given the name of an array element, these evaluate its index, and commands in it
_EVALUATORS = names("test [ printf read unset declare typeset local export readonly getopts wait")
_HIDDEN_COMMAND = re.compile(r"\[.*(\$\(|`|\$\{)", re.DOTALL)


def _after(words: Words, position: int, *, skip: int = 0, environment: bool = False) -> Opened:
    """The command that begins `skip` words after `position`, behind `NAME=value` words if `environment`."""
    opened = Opened()
    for word in words[position : position + skip]:
        if word.literal is None:
            raise NotUnderstoodError(f"what {word.source} becomes is only known when it runs")
    position += skip
    while environment and position < len(words):
        assignment = _ASSIGNMENT.match(words[position].value or words[position].source)
        if assignment is None:
            break
        value = plain_word(assignment.group(2)) if words[position].literal is not None else None
        opened.assignments.append(Assignment(assignment.group(1), value, exported=True))
        position += 1
    opened.inner_at = position
    if position < len(words):
        opened.inner = [words[position:]]
    return opened


def _consumed(words: Words, known: Options) -> int:
    return 1 + parse(words[1:], known, stop_at_operand=True).consumed


def _plain(words: Words) -> Opened:
    name = (words[0].literal or "").rsplit("/", 1)[-1]
    skip = 1 if name == "timeout" else 0
    return _after(
        words, _consumed(words, _WRAPPER_OPTIONS[name]), skip=skip, environment=name in {"sudo", "doas"}
    )


def _time(words: Words) -> Opened:
    """`time` is a keyword: what follows is again a command with its own assignments, perhaps after a `!`."""
    position = _consumed(words, _WRAPPER_OPTIONS["time"])
    if position < len(words) and words[position].source == "!":
        position += 1
    return _after(words, position, environment=True)


def _env(words: Words) -> Opened:
    if len(words) > 1 and words[1].literal == "-":
        words = (words[0], plain_word("-i"), *words[2:])
    parsed = parse(words[1:], _WRAPPER_OPTIONS["env"], stop_at_operand=True)
    opened = _after(words, 1 + parsed.consumed, environment=True)
    opened.folder = next(iter(parsed.given.get("C", []) + parsed.given.get("chdir", [])), None)
    return opened


def _command(words: Words) -> Opened:
    parsed = parse(words[1:], _WRAPPER_OPTIONS["command"], stop_at_operand=True)
    if "v" in parsed.given or "V" in parsed.given:
        return Opened()
    return _after(words, 1 + parsed.consumed)


def _xargs(words: Words) -> Opened:
    parsed = parse(words[1:], _WRAPPER_OPTIONS["xargs"], stop_at_operand=True)
    position = 1 + parsed.consumed
    inner = words[position:] or (plain_word("echo"),)
    marks = parsed.given.get("I", []) + parsed.given.get("replace", [])
    if marks:
        mark = marks[-1].literal or "{}"
        inner = tuple(Word(None, word.source) if mark in word.source else word for word in inner)
    else:
        inner = (*inner, Word(None, "(words from standard input)"))
    files = parsed.given.get("a", []) + parsed.given.get("arg-file", [])
    return Opened(inner=[inner], inner_at=position, reads=files)


def _shell(words: Words, stdin: str | None) -> Opened:
    arguments = list(words[1:])
    for index, word in enumerate(arguments):
        text = word.literal
        if text is None:
            raise NotUnderstoodError(f"what {word.source} becomes is only known when it runs")
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", text):
            return _shell_command(words, index + 1)
        if not text.startswith(("-", "+")) or text == "-":
            break
    parsed = parse(arguments, _SHELL_OPTIONS, stop_at_operand=True)
    if {"version", "help"} & parsed.given.keys():
        return Opened()
    operands = _after_dash(words, parsed.operands)
    if operands and "s" not in parsed.given:
        return _script_file(words, operands)
    if stdin is None:
        raise NotUnderstoodError("the commands come from standard input")
    return Opened(scripts=[stdin], inner_at=len(words))


def _script_file(words: Words, operands: list[Word]) -> Opened:
    """`sh FILE` runs the file, whatever program has the same name."""
    path = operands[0].literal
    if path is None:
        raise NotUnderstoodError(f"what {operands[0].source} becomes is only known when it runs")
    file = Word(path if "/" in path else f"./{path}", operands[0].source)
    return Opened(inner=[(file, *operands[1:])], inner_at=len(words) - len(operands))


def _shell_command(words: Words, option_at: int) -> Opened:
    """`sh -c TEXT`: further options may stand between, as in `bash -c -e TEXT`."""
    letters = (words[option_at].literal or "-").replace("c", "")
    parsed = parse(
        (plain_word(letters), *words[option_at + 1 :]) if len(letters) > 1 else words[option_at + 1 :],
        _SHELL_OPTIONS,
        stop_at_operand=True,
    )
    operands = _after_dash(words, parsed.operands)
    if not operands:
        raise NotUnderstoodError("there is no command after -c")
    text = operands[0].literal
    if text is None:
        raise NotUnderstoodError(f"what {operands[0].source} becomes is only known when it runs")
    return Opened(scripts=[text], inner_at=len(words) - len(operands))


def _after_dash(words: Words, operands: list[Word]) -> list[Word]:
    """A lone `-` ends the options of a shell, unless `--` has done so."""
    if not operands or operands[0].literal != "-" or words[-len(operands) - 1].literal == "--":
        return operands
    return operands[1:]


def _eval(words: Words) -> Opened:
    texts = [word.literal for word in words[1:]]
    if texts and texts[0] == "--":
        texts = texts[1:]
    if None in texts:
        raise NotUnderstoodError("the text is only known when it runs")
    return Opened(scripts=[" ".join(text or "" for text in texts)])


def _trap(words: Words) -> Opened:
    if len(words) < 3 or words[1].literal is None:
        raise NotUnderstoodError("the text is only known when it runs")
    return Opened(scripts=[words[1].literal], doubts=("trap runs commands later",))


def _find(words: Words) -> Opened:
    """`-exec`, `-execdir`, `-ok` and `-okdir` start the words up to `;` or `{} +`.

    With `dir` they do so in the folder of each file, which for the workspace itself is the one above.
    """
    opened = Opened(inner_at=len(words))
    position = 1
    while position < len(words):
        if words[position].value in {"-execdir", "-okdir"}:
            opened.folder = _FOLDER_OF_EACH_FILE
        if words[position].value in {"-exec", "-execdir", "-ok", "-okdir"}:
            opened.inner_at = min(opened.inner_at, position + 1)
            end = position + 1
            while end < len(words) and words[end].value not in {";", "+"}:
                end += 1
            inner = words[position + 1 : end]
            if inner:
                opened.inner.append(tuple(_without_braces(word) for word in inner))
            position = end
        elif words[position].value is None:
            raise NotUnderstoodError(f"what {words[position].source} becomes is only known when it runs")
        position += 1
    return opened


def _without_braces(word: Word) -> Word:
    return Word(None, word.source) if "{}" in (word.value or "") else word


def git_global_options(words: Words) -> tuple[dict[str, list[Word]], Words]:
    """Splits a git command into its global options and the words from the subcommand on.

    Raises:
        NotUnderstoodError: an option is not known.
    """
    parsed = parse(words[1:], _GIT_OPTIONS, stop_at_operand=True)
    return parsed.given, tuple(parsed.operands)


def _git(words: Words) -> Opened:
    given, rest = git_global_options(words)
    opened = Opened(inner_at=len(words) - len(rest))
    doubts: list[str] = []
    settings = [word.literal or "" for word in given.get("c", [])]
    for setting in settings:
        key, _, value = setting.partition("=")
        if key.lower().startswith("alias.") and value.startswith("!"):
            opened.scripts.append(value[1:])
        elif key.lower().startswith("alias."):
            doubts.append(f"an alias given with -c: {setting}")
        else:
            doubts.append(f"the setting {key} may name a program to run")
    if "config-env" in given or ("exec-path" in given and any(word.literal for word in given["exec-path"])):
        doubts.append("--config-env and --exec-path may name programs to run")
    if rest and rest[0].literal is None:
        doubts.append("the git subcommand is only known when it runs")
    opened.doubts = tuple(doubts)
    return opened


_OPENERS: dict[str, Callable[[Words], Opened]] = {
    "nice": _plain,
    "nohup": _plain,
    "timeout": _plain,
    "stdbuf": _plain,
    "setsid": _plain,
    "exec": _plain,
    "builtin": _plain,
    "sudo": _plain,
    "doas": _plain,
    "time": _time,
    "env": _env,
    "command": _command,
    "xargs": _xargs,
    "eval": _eval,
    "trap": _trap,
    "find": _find,
    "git": _git,
}
