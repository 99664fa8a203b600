"""`agent bench`: measures how fast servers are, and what drafting gains."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.app.measure.benching import BenchRequest
    from agent.bench.runner import Step

DESCRIPTION = """Sends the same prompts to one or more servers and compares their speed.

  agent bench gemma4-31b gemma4-31b-dflash    the first profile is the baseline
  agent bench embedded --against-plain        a profile against itself without speculation
  agent bench --url gpu-box:8080              a server that already runs

Figures are the server's own where it reports them; otherwise they are measured here, and marked.
"""

EPILOG = """exit codes: 0 everything was measured, 2 bad usage, 5 a server failed,
6 model file missing or wrong, 130 interrupted (what was measured is shown)"""

SUITES = ("coding", "quality", "agent")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "bench",
        help="measure speed, and what drafting gains",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_servers(parser)
    _add_prompts(parser)
    _add_runs(parser)
    parser.add_argument(
        "--json", "--output", metavar="FILE", default="", help="figures as JSON into FILE, - for stdout"
    )
    parser.add_argument("--html", metavar="FILE", type=Path, help="the report into FILE as well")
    parser.set_defaults(func=run)


def _add_servers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "profiles",
        nargs="*",
        metavar="PROFILE",
        help="what to measure; default: the profile of your settings",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="insist on at least two; the first is the baseline of the others",
    )
    parser.add_argument(
        "--against-plain", action="store_true", help="compare each profile with itself without speculation"
    )
    parser.add_argument(
        "--url",
        action="append",
        default=[],
        metavar="URL",
        help="a server that already runs; may be repeated",
    )
    parser.add_argument(
        "--api-key-env", metavar="NAME", default="", help="environment variable with the key for --url"
    )
    parser.add_argument("--model", metavar="NAME", default="", help="the model's name in requests")
    parser.add_argument(
        "--threads",
        metavar="N",
        type=_from(1),
        help="CPU threads of servers started here; default: of the profile",
    )
    parser.add_argument(
        "--fitted",
        action="store_true",
        help="read with the batch that fits this machine (batch_seconds), as sessions do",
    )


def _add_prompts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--suite",
        "--bench",
        action="append",
        default=[],
        choices=SUITES,
        help="coding (default): three Python files; quality: a web page, a diagram, an article; "
        "agent: turns with tool calls; may be repeated",
    )
    parser.add_argument(
        "--prompt-file",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="prompts of your own: .md or .txt (one prompt), .toml, .json; may be repeated",
    )
    parser.add_argument(
        "--category", metavar="LIST", default="all", help="only these categories or prompts, with commas"
    )
    parser.add_argument("--limit", metavar="N", type=_from(1), help="at most N prompts of each category")


def _add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        metavar="N",
        type=_from(1),
        default=3,
        help="runs of each prompt on each server (default: 3)",
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=_from(1),
        default=2,
        help="where only one server fits at a time: in how many turns the runs are made (default: 2)",
    )
    parser.add_argument(
        "--max-tokens",
        "--osl",
        metavar="N",
        type=_from(1),
        help="longest reply in tokens; default: of the suite (1200)",
    )
    parser.add_argument(
        "--temperature", metavar="T", type=_temperature, help="default: of the suite (mostly 0.7)"
    )
    parser.add_argument(
        "--seed", metavar="N", type=_from(0), default=42, help="of the first run (default: 42)"
    )
    parser.add_argument(
        "--greedy", action="store_true", help="temperature 0, and tell whether the outputs are identical"
    )
    parser.add_argument("--no-stream", action="store_true", help="ask for each reply in one piece")
    parser.add_argument(
        "--extra-inputs",
        metavar="JSON",
        type=_object,
        default={},
        help="more fields of requests; null removes one",
    )
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=_seconds,
        default=1800.0,
        help="seconds without a sign of the server until it is given up (default: 1800)",
    )


def run(arguments: argparse.Namespace) -> int:
    import signal
    import sys

    from agent.cli.progress import ProgressLine

    # Until the runs take signals themselves, being asked to end is the same as Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from agent.app.measure.benching import run_bench

    request = request_of(arguments)
    line = ProgressLine()

    def watch(step: "Step") -> None:
        line.show(describe(step), f"{step.server} {step.what}")

    def say(text: str) -> None:
        line.end()
        print(text, file=sys.stderr, flush=True)

    try:
        return run_bench(request, watch, say, line.end)
    finally:
        line.end()


def request_of(arguments: argparse.Namespace) -> "BenchRequest":
    """What the command line asks for. Raises UsageError for what does not go together."""
    from agent.app.measure.benching import BenchRequest
    from agent.core.errors import UsageError

    if arguments.compare and len(arguments.profiles) + len(arguments.url) < 2:
        raise UsageError(
            "--compare needs two profiles", "for example `agent bench --compare gemma4-31b gemma4-31b-dflash`"
        )
    if arguments.greedy and arguments.temperature:
        raise UsageError("--greedy is temperature 0", "leave out --temperature or --greedy")
    categories = [] if arguments.category == "all" else arguments.category.split(",")
    return BenchRequest(
        profiles=tuple(arguments.profiles),
        urls=tuple(arguments.url),
        api_key_env=arguments.api_key_env,
        against_plain=arguments.against_plain,
        suites=tuple(dict.fromkeys(arguments.suite)),
        prompt_files=tuple(arguments.prompt_file),
        categories=tuple(name.strip() for name in categories if name.strip()),
        limit=arguments.limit,
        runs=arguments.runs,
        rounds=arguments.rounds,
        max_tokens=arguments.max_tokens,
        temperature=arguments.temperature,
        seed=arguments.seed,
        greedy=arguments.greedy,
        stream=not arguments.no_stream,
        model=arguments.model,
        threads=arguments.threads,
        fits_batch=arguments.fitted,
        extra=arguments.extra_inputs,
        timeout_seconds=arguments.timeout,
        json=arguments.json,
        html=arguments.html,
    )


def describe(step: "Step") -> str:
    """One line of progress."""
    count = f"[{step.done + 1}/{step.total}] " if step.total else ""
    speed = f": {step.tokens} pieces in {step.seconds:.0f} s" if step.tokens else ""
    return f"{count}{step.server}: {step.what}{speed}"


def _from(lowest: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        if not text.isdecimal() or not lowest <= int(text) < 2**31:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {lowest} on")
        return int(text)

    return whole_number


def _number(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {low:g} to {high:g}")
    return value


def _temperature(text: str) -> float:
    return _number(text, 0, 5)


def _seconds(text: str) -> float:
    return _number(text, 0.1, 1e6)


def _object(text: str) -> dict[str, Any]:
    import json

    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"no JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('not a JSON object, such as {"top_k": 40}')
    return value
