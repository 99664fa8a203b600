"""`agent run`: a task without a person watching."""

import argparse
import gc
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.app.run.request import RunRequest
    from agent.core.errors import AgentError

DESCRIPTION = """Does one task in the repository of the current folder; its exit code tells how it went.

TASK is a Markdown file, or - for standard input. Optional front matter:

  ---
  profile: embedded          # which server profile
  check: python -m pytest -q # a command that has to pass; its failures go back to the model
  allow: [shell(make *)]     # permission rules, also: deny
  protect: [golden/**]       # files that must not be changed; default with a check: the existing tests
  max_steps: 30
  max_tool_calls: 60
  max_seconds: 600
  ---
"""

EPILOG = """exit codes: 0 done (and the check passed), 1 not solved or the check failed, 2 bad usage,
3 a limit was reached, 4 permission denied, 5 server failed, 6 model file missing or wrong, 130 interrupted"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "run",
        help="do a task in this repository without a person watching",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "task",
        nargs="*",
        metavar="TASK",
        help="a Markdown file, or - for standard input, which goes along with -p; several are a batch",
    )
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="the task itself, instead of a file")
    parser.add_argument(
        "-C",
        "--directory",
        metavar="DIR",
        type=Path,
        help="work here; TASK is looked up from the current folder",
    )
    parser.add_argument("--profile", metavar="NAME", help="server profile, see `agent profile list`")
    parser.add_argument("--check", metavar="COMMAND", help="shell command that has to exit with 0")
    _add_bounds(parser)
    _add_results(parser)
    _add_earlier(parser)
    _add_batch(parser)
    parser.set_defaults(func=run)


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    rule = {"metavar": "RULE", "action": "append", "default": []}
    parser.add_argument("--allow", help="permit, for example 'shell(make *)'", **rule)
    parser.add_argument("--deny", help="forbid, for example 'write(docs/**)'", **rule)
    parser.add_argument(
        "--max-steps", metavar="N", type=int, help="most requests to the model (default: limits.max_steps)"
    )
    parser.add_argument(
        "--max-tool-calls",
        metavar="N",
        type=int,
        help="most tool calls, sub-agents' included (default: limits.max_tool_calls)",
    )
    parser.add_argument(
        "--max-seconds",
        metavar="S",
        type=float,
        help="most seconds, the server's start included (default: limits.max_seconds)",
    )


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        choices=("text", "json", "jsonl"),
        default="text",
        help="what goes to stdout: the answer, one JSON object at the end, or a line of JSON per event",
    )
    parser.add_argument(
        "--branch",
        metavar="NAME",
        help="create this git branch and work on it; in a batch NAME/TASK for each task",
    )
    parser.add_argument(
        "--commit", action="store_true", help="commit what the run changed, if it is done; no work of yours"
    )


def _add_earlier(parser: argparse.ArgumentParser) -> None:
    earlier = parser.add_argument_group("an earlier session")
    which = earlier.add_mutually_exclusive_group()
    which.add_argument(
        "--continue",
        dest="resume",
        action="store_const",
        const="last",
        help="go on with the last run or conversation in this folder; the task is what is said next",
    )
    which.add_argument("--resume", metavar="ID", help="go on with this one: its id, or its beginning or end")
    earlier.add_argument(
        "--fork", action="store_true", help="go on in a copy; the session itself stays as it is"
    )


def _add_batch(parser: argparse.ArgumentParser) -> None:
    batch = parser.add_argument_group("several tasks")
    batch.add_argument(
        "--jobs",
        metavar="N",
        type=int,
        help="each task in a work tree and on a branch of its own, N at once as far as the server has slots",
    )
    batch.add_argument(
        "--resume-batch",
        metavar="ID",
        help="go on with a batch that was interrupted, or run again what is not done; also: last",
    )


def run(arguments: argparse.Namespace) -> int:
    # Nothing that the imports make is garbage, and looking for some takes a tenth of their time. The run
    # turns the collector on again as soon as everything is loaded.
    gc.disable()
    # Until the run takes signals itself, being asked to end is the same as Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(arguments)
    finally:
        gc.enable()


def _run(arguments: argparse.Namespace) -> int:
    if len(arguments.task) > 1 or arguments.jobs is not None or arguments.resume_batch is not None:
        from agent.app.batch.command import run_batch

        if arguments.resume is not None or arguments.fork:
            from agent.core.errors import UsageError

            raise UsageError(
                "a batch begins sessions of its own", "leave out --continue, --resume and --fork"
            )
        return run_batch(
            request_of(arguments), arguments.task, jobs=arguments.jobs, resume=arguments.resume_batch
        )
    # The server may read while the rest is loaded.
    from agent.app.servers.early import begin_early

    goes_on = arguments.resume is not None
    early = None if goes_on else begin_early(arguments.directory, arguments.profile)

    from agent.app.run.headless import run_headless

    return run_headless(request_of(arguments), early=early)


def request_of(arguments: argparse.Namespace) -> "RunRequest":
    """What the command line asks for."""
    from agent.app.run.request import RunRequest

    return RunRequest(
        task=arguments.task[0] if arguments.task else None,
        prompt=arguments.prompt,
        directory=arguments.directory,
        output=arguments.output,
        branch=arguments.branch,
        commit=arguments.commit,
        profile=arguments.profile,
        check=arguments.check,
        allow=tuple(arguments.allow),
        deny=tuple(arguments.deny),
        max_steps=arguments.max_steps,
        max_tool_calls=arguments.max_tool_calls,
        max_seconds=arguments.max_seconds,
        resume=arguments.resume,
        fork=arguments.fork,
    )


def refuse(argv: Sequence[str], error: "AgentError") -> None:
    """Prints the result of a command line that could not be read, if it asks for a JSON form."""
    form = "text"
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        if word == "--output":
            form = following
        elif word.startswith("--output="):
            form = word.removeprefix("--output=")
    if form in ("json", "jsonl"):
        import json

        from agent.app.run.output import error_record

        print(json.dumps(error_record(error)))
