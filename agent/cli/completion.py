"""`agent completion`: a script with which a shell completes commands, options, profiles and files."""

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

SHELLS = ("bash", "zsh", "fish")
_FILES = frozenset({"FILE", "PATH", "TASK"})
_FOLDERS = frozenset({"DIR"})
_PLAIN_NAME = re.compile(r"[\w.+-]+")
"""A name that means nothing else to a shell."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `completion`."""
    parser = subparsers.add_parser(
        "completion",
        help="let your shell complete commands, options and profiles",
        description=__doc__,
        epilog="""examples:
  eval "$(agent completion bash)"                                      in ~/.bashrc
  agent completion zsh > ~/.zfunc/_agent                               a folder of your fpath
  agent completion fish > ~/.config/fish/completions/agent.fish

It knows the profiles that were there when it was made.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", metavar="SHELL", nargs="?", choices=SHELLS, help="bash, zsh or fish")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the script, without a shell that for $SHELL. Raises UsageError for one that is not known."""
    from agent.core.errors import UsageError

    shell = arguments.shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise UsageError(
            f"there is no completion for {shell}" if shell else "which shell is it for?",
            "name one: agent completion bash, zsh or fish",
        )
    sys.stdout.write(script(shell, _profiles()))
    return 0


def script(shell: str, profiles: Sequence[str]) -> str:
    """What `shell` has to read, with these profiles by name."""
    import shtab

    from agent.cli import chat
    from agent.cli.main import COMMANDS, parser_with

    parser = parser_with(COMMANDS)
    chat.add_options(parser)  # they may stand directly behind `agent`
    for action in _arguments(parser):
        if action.metavar == "PROFILE" or "--profile" in action.option_strings:
            action.choices = profiles
        elif action.metavar in _FILES:
            vars(action)["complete"] = shtab.FILE
        elif action.metavar in _FOLDERS:
            vars(action)["complete"] = shtab.DIRECTORY
    return f"{shtab.complete(parser, shell=shell).rstrip()}\n"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Of the command and of all below it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _arguments(below)
        else:
            yield action


def _profiles() -> list[str]:
    from agent.resources import places_of_profiles
    from agent.server.profile_files import list_profiles

    names = [file.name for file in list_profiles(places_of_profiles())]
    return [name for name in names if _PLAIN_NAME.fullmatch(name)]
