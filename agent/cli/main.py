"""The command line as a whole: which commands there are, and how an error reaches a person."""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Container, Sequence
from importlib import import_module
from itertools import pairwise
from typing import NoReturn, TextIO

from agent import __version__
from agent.cli.arguments import Parser, close_to
from agent.cli.elsewhere import option_meant

# Only the module of the command that is asked for is imported; the others are known by their summary.
COMMANDS = {
    "chat": "the terminal interface; the same as `agent` alone",
    "run": "do a task in this repository without a person watching",
    "setup": "propose a model for this machine, and get it running",
    "doctor": "check everything, each finding with its remedy",
    "undo": "take back what the last run changed",
    "session": "list, show and remove recorded sessions",
    "server": "start, stop and look at the model server",
    "model": "fetch and check model files",
    "bench": "measure speed, and what drafting gains",
    "tune": "find the fastest settings for this machine",
    "profile": "list, show and check server profiles",
    "config": "show and change settings",
    "mcp": "add, list and try MCP servers",
    "skills": "list, show, check and add skills",
    "acp": "serve an editor over the Agent Client Protocol",
    "trust": "let this project's own config choose commands and permissions",
    "completion": "let your shell complete commands, options and profiles",
}

DESCRIPTION = """A coding assistant for people who run their own model.

Without a command it opens the terminal interface, which takes --profile NAME, --continue and --resume [ID];
`agent chat --help` shows all of its options. `agent "fix the failing test"` opens it with that sent already,
`agent -p "fix the failing test"` does it without the interface, as `agent run` does."""

EXIT_CODES = """exit codes of `agent run`:
  0 done, and the check passed        4 permission denied
  1 not solved, or the check failed   5 the server failed
  2 bad usage, config or task file    6 model file missing or wrong
  3 a limit was reached             130 interrupted"""


_OWN_OPTIONS = ("-h", "--help", "--version", "--")
_TASK_OPTIONS = ("-p", "--prompt")
# Of the interface and of `agent run`: the word behind one of them is no command.
_WITH_A_VALUE = (
    *_TASK_OPTIONS, "-C", "--directory", "--profile", "--mode", "--resume", "--check", "--allow", "--deny",
    "--max-steps", "--max-tool-calls", "--max-seconds", "--output", "--branch", "--jobs", "--resume-batch",
)  # fmt: skip


def run(argv: Sequence[str]) -> int:
    """Runs the command line; returns the exit code."""
    _open_closed_streams()
    try:
        code = _told(lambda: _command(argv))
    except SystemExit as ended:  # of `--help` and the like
        raise SystemExit(ended.code or _told(sys.stdout.flush)) from None
    lost = _told(sys.stdout.flush)
    return code or lost


def _command(argv: Sequence[str]) -> int:
    arguments = _parse(argv)
    arguments.line = ("agent", *argv)
    return arguments.func(arguments)


def _told(work: Callable[[], int | None]) -> int:
    """Does it, and tells a person what went wrong; returns the exit code."""
    from agent.core.errors import AgentError, ExitCode

    try:
        return work() or 0
    except AgentError as error:
        _complain(str(error))
        return int(error.exit_code)
    except KeyboardInterrupt:
        _complain("interrupted")
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        _redirect_to_nowhere(sys.stdout)
        return int(ExitCode.NOT_SOLVED)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and _is_current_folder_gone():
            _complain("the current folder is gone\nhint: change to a folder that exists, then try again")
            return int(ExitCode.USAGE)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = f": {error.filename}" if error.filename else ", where the output goes or files are kept"
        _complain(f"the disk is full{where}")
        _redirect_to_nowhere(sys.stdout)
        return int(ExitCode.NOT_SOLVED)


def _open_closed_streams() -> None:
    """Gives output that the starter has closed somewhere to go.

    A closed descriptor would be taken by the next file that is opened, and whoever writes to stderr, a
    child program say, would write into that file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    # Python has no object for a stream that was closed. For stdin that is left so: there is no task in it.
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _is_current_folder_gone() -> bool:
    from pathlib import Path

    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _complain(text: str) -> None:
    try:
        print(f"agent: {text}", file=sys.stderr, flush=True)
    except OSError:
        _redirect_to_nowhere(sys.stderr)


def _redirect_to_nowhere(stream: TextIO) -> None:
    """For an output whose reader is gone: without this Python complains again while it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def parser_with(loaded: Container[str | None]) -> Parser:
    """The parser of the command line. Of commands that are not among `loaded` it has the summary alone."""
    parser = Parser(
        prog="agent",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"agent {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for name, summary in COMMANDS.items():
        if name in loaded:
            import_module(f"agent.cli.{name}").add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    return parser


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    argv = _with_default_command([*argv[1:], "--help"] if argv and argv[0] == "help" else argv)
    chosen = next((word for word in argv if not word.startswith("-")), None)
    arguments = _arguments(parser_with((chosen,)), argv, chosen)
    if not hasattr(arguments, "func"):
        from agent.core.errors import UsageError

        raise UsageError(
            "the terminal interface needs a terminal",
            '`agent run -p "…"` does a task without one; `agent --help` lists the commands',
        )
    return arguments


def _with_default_command(argv: Sequence[str]) -> Sequence[str]:
    """`agent` alone, with a prompt or with options of the interface, opens it; with -p it is `agent run`."""
    if not argv:
        in_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
        return ["chat"] if in_terminal else argv
    options = argv[: argv.index("--")] if "--" in argv else argv
    has_task = any(word.partition("=")[0] in _TASK_OPTIONS for word in options)
    first = "".join(argv[1:2]) if argv[0] == "--" else argv[0]
    if is_prompt(first) and (argv[0] == "--" or not first.startswith("-")):
        if has_task:
            _refuse_option("-p", ())
        return ["chat", *argv]
    if not argv[0].startswith("-"):
        return argv
    if argv[0] not in _OWN_OPTIONS:
        _refuse_options_before_a_command(options)
    if has_task:
        return ["run", *argv]
    from agent.cli.chat import OPTIONS

    option = argv[0].partition("=")[0]
    if option in OPTIONS or option.startswith("-C"):
        return ["chat", *argv]
    if option not in _OWN_OPTIONS:
        _refuse_option(option, (*OPTIONS, *_OWN_OPTIONS))
    return argv


def is_prompt(word: str) -> bool:
    """Whether a first word is something to say to the model. One word of letters is a command."""
    return len(word.split()) > 1 or not (word.isascii() or close_to(word, COMMANDS))


def _refuse_options_before_a_command(words: Sequence[str]) -> None:
    """Raises UsageError for `agent --profile NAME doctor`, which would say "doctor" to the model."""
    from agent.core.errors import UsageError

    for before, word in pairwise(words):
        if word in COMMANDS and before not in _WITH_A_VALUE:
            raise UsageError(
                f"{word} is a command, and options come behind it",
                f"see `agent {word} --help`",
            )


def _refuse_option(option: str, known: Sequence[str]) -> NoReturn:
    from agent.core.errors import UsageError

    meant = option_meant(option, known) or next(iter(close_to(option, known)), "")
    hint = f"did you mean {meant}?" if meant else "see `agent --help` and `agent chat --help`"
    if option in (*_TASK_OPTIONS, "--print"):
        hint = "`agent run -p 'what to do'` does a task without a person watching"
    raise UsageError(f"there is no option {option}", hint)


def _refuse_files_as_folders() -> None:
    """Raises UsageError for a folder of the person's that is a file: it would look like an empty one."""
    from agent.core.errors import UsageError
    from agent.resources import FOLDER_VARIABLES, expand_home

    for variable in FOLDER_VARIABLES:
        folder = expand_home(os.environ.get(variable, ""))
        if folder.is_file():
            hint = f"choose another with {variable}, or move the file out of the way"
            raise UsageError(f"{folder} is not a folder", hint)


def _arguments(
    parser: argparse.ArgumentParser, argv: Sequence[str], chosen: str | None
) -> argparse.Namespace:
    """Raises UsageError. Who wants JSON gets some, also when the rest of the line is wrong."""
    from agent.core.errors import UsageError

    try:
        arguments = parser.parse_args(argv)
        if chosen not in ("doctor", "config"):  # they say it as a finding, or are needed to see it
            _refuse_files_as_folders()
        return arguments
    except UsageError as error:
        if chosen in COMMANDS:
            error.hint = error.hint.replace("`agent --help`", f"`agent {chosen} --help`")
        elif chosen and len(argv) > 1 and "did you mean" not in error.hint:
            error.hint += "; what the model is to do goes into quotes: agent 'what to do'"
        if chosen == "run":
            from agent.cli.run import refuse

            refuse(argv, error)
        raise
