"""Test and build commands of a project, which a coding agent runs all the time.

They run code of the repository, so they are only allowed by default where the agent may edit that code.
"""

import re
from collections.abc import Callable, Sequence

from agent.permissions.options import NotUnderstoodError
from agent.permissions.words import Word

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_VENV = re.compile(r"(\./)?\.?venv/bin/")
_PYTHON_FLAGS = frozenset(["-u", "-B", "-E", "-I", "-O", "-OO", "-s", "-S", "-v", "-q", "-b", "-bb", "-P"])
_PYTHON_MODULES = frozenset(
    {"pytest", "unittest", "doctest", "compileall", "py_compile", "mypy", "ruff", "pyright"}
)
_NPM_SCRIPTS = frozenset({"test", "lint", "build", "typecheck", "type-check", "check", "format"})
_MAKE_TARGETS = frozenset({"test", "tests", "check", "lint", "typecheck", "build", "all"})
_RULED_OUT = re.compile(
    # deletes the folder that it names, uploads, waits for a person, or names programs to run
    r"--install-types|--basetemp(=.*)?|--pastebin(=.*)?|--pdb(cls=?.*)?|--trace|--py.*|--wrapper.*|--ui(=.*)?"
    r"|--?(exec|toolexec|overlay|modfile|vettool|jsontool|ldflags|gcflags|asmflags|gccgoflags|compiler)(=.*)?"
    r"|--config(=.*)?|-Z.*|\+.*|--(tx|px)(=.*)?"
)


def check_runner(words: Sequence[Word]) -> tuple[Word, ...]:
    """Recognises a test or build command, and returns the words that have to stay inside the workspace.

    Raises:
        NotUnderstoodError: it is not one, or an argument makes it more than that.
    """
    name = _VENV.sub("", words[0].literal or "")
    arguments = list(words[1:])
    for word in arguments:
        if word.literal is None:
            raise NotUnderstoodError(f"what {word.source} becomes is only known when it runs")
        if _RULED_OUT.fullmatch(word.literal):
            raise NotUnderstoodError(f"the option {word.literal} can do more than run the project's code")
    if _PYTHON.fullmatch(name):
        return _python(arguments)
    check = _RUNNERS.get(name)
    if check is None:
        raise NotUnderstoodError(f"{name or words[0].source} is not in the list of test and build commands")
    check(arguments)
    return tuple(arguments)


def _python(arguments: list[Word]) -> tuple[Word, ...]:
    position = 0
    while position < len(arguments) and arguments[position].literal in _PYTHON_FLAGS:
        position += 1
    texts = [word.literal or "" for word in arguments[position:]]
    if len(texts) >= 2 and texts[0] == "-m" and texts[1] in _PYTHON_MODULES:
        return tuple(arguments[position + 2 :])
    if not texts or not re.fullmatch(r"[^-].*\.py", texts[0]):
        raise NotUnderstoodError("python is only started on a file of the workspace or on a test module")
    return tuple(arguments[position:])


def _first_of(*names: str) -> Callable[[list[Word]], None]:
    def check(arguments: list[Word]) -> None:
        if not arguments or arguments[0].literal not in names:
            raise NotUnderstoodError(f"it is not followed by {' or '.join(names)}")

    return check


def _npm(arguments: list[Word]) -> None:
    texts = [word.literal or "" for word in arguments]
    if texts[:1] in (["run"], ["run-script"]):
        texts = texts[1:]
        if not texts or texts[0] not in _NPM_SCRIPTS:
            raise NotUnderstoodError("this script is not one of the usual test and build scripts")
    elif texts[:1] not in (["test"], ["t"]):
        raise NotUnderstoodError("it does more than run a test or build script")
    before_dashes = texts[1 : texts.index("--")] if "--" in texts else texts[1:]
    if any(text.startswith("--") and text != "--silent" for text in before_dashes):
        raise NotUnderstoodError("its options may name programs to run")


def _make(arguments: list[Word]) -> None:
    texts = [word.literal or "" for word in arguments]
    targets = [text for text in texts if not text.startswith("-") and not text.isdigit()]
    flags = [text for text in texts if text.startswith("-")]
    if not targets or not set(targets) <= _MAKE_TARGETS:
        raise NotUnderstoodError("its target is not one of the usual test and build targets")
    if any(not re.fullmatch(r"-[skBnw]|-j\d*|--silent|--keep-going", flag) for flag in flags):
        raise NotUnderstoodError("its options are not in the list of harmless ones")


def _node(arguments: list[Word]) -> None:
    texts = [word.literal or "" for word in arguments]
    if texts[:1] == ["--test"]:
        texts = texts[1:]
        if not texts:
            return
    if not texts or not re.fullmatch(r"[^-].*", texts[0]):
        raise NotUnderstoodError("node is only started on a file of the workspace")


def _anything(arguments: list[Word]) -> None:
    """Every argument is fine that `check_runner` has not ruled out."""


def _tsc(arguments: list[Word]) -> None:
    if "--noEmit" not in [word.literal for word in arguments]:
        raise NotUnderstoodError("tsc without --noEmit writes files")


_RUNNERS: dict[str, Callable[[list[Word]], None]] = {
    "pytest": _anything,
    "mypy": _anything,
    "pyright": _anything,
    "ruff": _first_of("check", "format", "rule", "version"),
    "npm": _npm,
    "pnpm": _npm,
    "yarn": _npm,
    "go": _first_of("test", "build", "vet", "fmt"),
    "cargo": _first_of("test", "check", "build", "clippy", "fmt"),
    "make": _make,
    "node": _node,
    "tsc": _tsc,
}
