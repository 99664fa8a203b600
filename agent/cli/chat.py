"""`agent` without a command: the terminal interface."""

import argparse
import gc
import os
import sys
from pathlib import Path

OPTIONS = ("--profile", "--mode", "--resume", "--continue", "--fork", "--plain", "--directory", "-C")
"""What may stand directly behind `agent`; everything else belongs to a command."""

MODES = ("plan", "ask", "accept-edits", "auto")
LAST = "last"
_CHOOSE = "/resume"
"""What a person types to choose a session."""
_LONGEST_SHOWN = 60


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "chat",
        help="the terminal interface; the same as `agent` alone",
        description="Opens the terminal interface in the current folder. `chat` may be left out.",
        epilog="""examples:
  agent                                          a new session
  agent 'why does the last test fail?'           a new session that begins with this
  agent --continue 'now the same for parse.py'   go on with the last one
  agent --profile embedded-small --mode plan""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    parser.add_argument(
        "prompt", metavar="PROMPT", nargs="?", default="", help="what is sent first, in quotes"
    )
    parser.set_defaults(func=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds what may also stand directly behind `agent`, see `OPTIONS`."""
    parser.add_argument("-C", "--directory", metavar="DIR", type=Path, help="work here")
    parser.add_argument("--profile", metavar="NAME", help="server profile, see `agent profile list`")
    parser.add_argument("--mode", choices=MODES, help="what the model may do without a question")
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument(
        "--resume",
        metavar="ID",
        nargs="?",
        const=_CHOOSE,
        help="go on with an earlier session; without an id they are shown to choose from",
    )
    earlier.add_argument(
        "--continue", dest="resume", action="store_const", const=LAST, help="go on with the last session"
    )
    parser.add_argument("--fork", action="store_true", help="with --resume: go on in a copy of it")
    parser.add_argument(
        "--plain", action="store_true", help="lines in, lines out: for screen readers and simple terminals"
    )


def run(arguments: argparse.Namespace) -> int:
    """Raises UsageError: there is no terminal, or no such folder."""
    from agent.core.errors import UsageError

    resume, prompt = _said(arguments.resume or "", arguments.prompt, arguments.fork)
    plain = arguments.plain or os.environ.get("TERM") == "dumb"
    if not plain and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "the terminal interface needs a terminal",
            f"`agent run -p {_quoted(prompt)}` does a task without one; or use --plain",
        )
    if arguments.fork and not resume:
        raise UsageError("--fork needs --resume ID or --continue")
    if arguments.directory is not None:
        _change_to(arguments.directory)
    # Imports make no garbage; the interface turns the collector on again when it has loaded everything.
    gc.disable()
    try:
        from agent.app.chat.front import FrontRequest, run_front

        return run_front(
            FrontRequest(
                workspace=Path.cwd(),
                profile=arguments.profile or "",
                mode=arguments.mode,
                resume=resume,
                fork=arguments.fork,
                plain=plain,
                prompt=prompt,
            )
        )
    finally:
        gc.enable()


def _said(resume: str, prompt: str, fork: bool) -> tuple[str, str]:
    """The session to go on with, and what to say in it: a prompt behind --resume is no id.

    Sessions are shown to choose from where somebody is there to choose, and nothing else is asked for.
    """
    if resume == _CHOOSE:
        return (LAST, prompt) if prompt or fork or not sys.stdin.isatty() else ("", _CHOOSE)
    return (LAST, resume) if len(resume.split()) > 1 and not prompt else (resume, prompt)


def _quoted(prompt: str) -> str:
    """The prompt as a shell takes it, where it is short enough to be read in a hint."""
    import shlex

    is_short = prompt.isprintable() and 0 < len(prompt) <= _LONGEST_SHOWN
    return shlex.quote(prompt) if is_short and not prompt.startswith("-") else "'what to do'"


def _change_to(folder: Path) -> None:
    from agent.core.errors import UsageError

    try:
        os.chdir(folder)
    except OSError as error:
        raise UsageError(f"cannot work in {folder}: {error.strerror}") from error
