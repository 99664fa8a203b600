"""`agent tune`: finds the fastest settings of a profile for this machine by measured runs."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.app.measure.tuning import TuneRequest

DESCRIPTION = """Starts the server of a profile again and again with other settings and measures each.

  agent tune gemma4-31b-dflash                 half an hour: kinds of speculation, n_max, p_min, threads
  agent tune embedded --only n_max --minutes 10
  agent tune gemma4-31b-dflash --suite agent   turns with long prompts; batch sizes are tried as well

What is faster than the profile beyond the noise is written as a new profile that extends it, with the
evidence in comments. When nothing is, nothing is written.
"""

EPILOG = """exit codes: 0 done (also when nothing faster was found), 2 bad usage, 5 the server failed,
6 model file missing or wrong, 130 interrupted (what was measured is kept)"""

SUITES = ("coding", "agent")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "tune",
        help="find the fastest settings for this machine",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "profile", nargs="?", default="", metavar="PROFILE", help="default: the profile of your settings"
    )
    parser.add_argument(
        "--minutes",
        metavar="N",
        type=_minutes,
        default=30.0,
        help="the budget in minutes; about half of it is kept for the comparison that decides (default: 30)",
    )
    parser.add_argument(
        "--only",
        metavar="LIST",
        default="",
        help="what to vary, with commas: kinds,n_max,p_min,threads,batch",
    )
    parser.add_argument(
        "--suite", choices=SUITES, default="coding", help="which prompts to measure with (default: coding)"
    )
    parser.add_argument("--limit", metavar="N", type=_count, help="at most N prompts of the suite")
    parser.add_argument(
        "--osl",
        "--max-tokens",
        metavar="N",
        type=_reply,
        default=256,
        help="length of each reply in tokens (default: 256)",
    )
    parser.add_argument(
        "--threads", metavar="N", type=_count, help="CPU threads, held fixed; default: varied"
    )
    parser.add_argument(
        "--save-as", metavar="NAME", default="", help="name of the new profile (default: PROFILE-tuned)"
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout, the table on stderr")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    import signal

    from agent.cli.progress import ProgressLine

    # Until the runs take signals themselves, being asked to end is the same as Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from agent.app.measure.tuning import run_tune

    line = ProgressLine()
    request = request_of(arguments)

    def say(text: str) -> None:
        line.end()
        print(text, file=sys.stderr if arguments.json else sys.stdout, flush=True)

    def tell(text: str, essence: str) -> None:
        # Where nobody watches, the row of each candidate says enough.
        if sys.stderr.isatty():
            line.show(text, essence)

    def offer(question: str) -> bool:
        line.end()
        if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    try:
        return run_tune(request, tell, say, offer)
    finally:
        line.end()


def request_of(arguments: argparse.Namespace) -> "TuneRequest":
    """What the command line asks for. Raises UsageError."""
    import shlex

    from agent.app.measure.tuning import TuneRequest
    from agent.app.measure.tuning_space import dimension_names

    return TuneRequest(
        profile=arguments.profile,
        minutes=arguments.minutes,
        only=dimension_names(arguments.only) if arguments.only else (),
        suite=arguments.suite,
        limit=arguments.limit,
        reply_tokens=arguments.osl,
        threads=arguments.threads,
        save_as=arguments.save_as,
        json=arguments.json,
        command=shlex.join(arguments.line),
    )


def _count(text: str) -> int:
    return _whole(text, 1)


def _reply(text: str) -> int:
    return _whole(text, 8)


def _whole(text: str, lowest: int) -> int:
    if not text.isdecimal() or not lowest <= int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {lowest} on")
    return int(text)


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0.1 <= value <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of minutes from 0.1 to 10000")
    return value
