"""The command line as a whole: which commands there are, and how an error reaches a person."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from agent import __version__

# Only the module of the command that is asked for is imported; the others are known by their summary.
COMMANDS = {
    "run": "do a task in this repository without a person watching",
    "undo": "take back what the last run changed",
    "session": "list, show and remove recorded sessions",
    "server": "start, stop and look at the model server",
    "model": "fetch and check model files",
    "profile": "list, show and check server profiles",
    "config": "show and change settings",
    "trust": "let this project's own config choose commands and permissions",
}

EXIT_CODES = """exit codes of `agent run`:
  0 done, and the check passed        4 permission denied
  1 not solved, or the check failed   5 the server failed
  2 bad usage, config or task file    6 model file missing or wrong
  3 a limit was reached             130 interrupted"""


def run(argv: Sequence[str]) -> int:
    """Runs the command line; returns the exit code."""
    from agent.core.errors import AgentError, ExitCode

    arguments = _parse(argv)
    try:
        return arguments.func(arguments)
    except AgentError as error:
        print(f"agent: {error}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print("agent: interrupted", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output is gone; without this Python complains again while it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.NOT_SOLVED)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="agent",
        description="A coding assistant for people who run their own model.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"agent {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)
    chosen = next((word for word in argv if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        if name == chosen:
            import_module(f"agent.cli.{name}").add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    arguments = parser.parse_args(argv)
    if not hasattr(arguments, "func"):
        parser.print_help()
        parser.exit(0 if not argv else 2)
    return arguments


class _Parser(argparse.ArgumentParser):
    """Errors in the form of all others: one line that says what is wrong, and what to do."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"agent: {_plain(message)}\nhint: see `{self.prog} --help`\n")


def _plain(message: str) -> str:
    return message.replace("argument COMMAND: ", "")
