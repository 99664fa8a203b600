"""`agent setup`: from a bare machine to a model that answers, after one confirmation."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from agent.app.setup.option import Option
    from agent.app.setup.proposal import Proposal
    from agent.app.setup.steps import SetupRun

DESCRIPTION = """Looks at GPU, memory, disk, installed and running model servers, proposes one with a
profile, and after one confirmation does it: install, download, start, measure, write
your settings. Interrupted, it goes on the next time. Servers of others are never stopped.

Without a terminal and without --yes only the proposal is printed.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "setup",
        help="propose a model for this machine, and get it running",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--profile", metavar="NAME", default="", help="this one instead of the best one")
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    parser.add_argument("--dry-run", action="store_true", help="only print the proposal")
    parser.add_argument(
        "--json", action="store_true", help="the proposal as JSON on stdout; with --yes also what was done"
    )
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Proposes, asks, does it."""
    from agent.app.setup.look import Outside, look_around
    from agent.app.setup.proposal import propose
    from agent.app.setup.text import as_json, render
    from agent.app.setup.writing import described_writes, unfinished
    from agent.config.load import find_project_root

    project = find_project_root(Path.cwd())
    found = look_around(Outside(project=project))
    proposal = propose(found, arguments.profile, unfinished(os.environ))
    writes = described_writes(proposal.option, found.loaded, os.environ)
    acts = arguments.yes and not arguments.dry_run
    if not arguments.json:
        print(_fitted(render(proposal, writes), sys.stdout), end="", flush=True)
    elif not acts:
        _print_json(as_json(proposal, writes))
    if arguments.dry_run or (arguments.json and not acts):
        return 0
    option = proposal.option if acts else _confirmed(proposal)
    if option is None:
        return 0
    return _carry_out(option, project, arguments, as_json(proposal, writes) if arguments.json else None)


def _fitted(text: str, stream: TextIO) -> str:
    """The proposal as wide as the terminal; what follows a label hangs below its beginning."""
    from agent.app.setup.text import hanging_indent
    from agent.cli.wrapping import terminal_width, wrapped

    width = terminal_width(stream)
    lines = [wrapped(line, width, hang=hanging_indent(line)) for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _confirmed(proposal: "Proposal") -> "Option | None":
    """What the person agrees to; None for nothing. Without a terminal they are told what to type."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        usable = proposal.option.is_usable
        name = proposal.option.profile
        command = f"agent setup --profile {name} --yes"
        print(f"nothing was done; to do it: {command}" if usable else "nothing was done", file=sys.stderr)
        return None
    choices = {str(number): one for number, one in enumerate(proposal.alternatives, 1) if one.is_usable}
    if proposal.option.is_usable:
        choices |= dict.fromkeys(("", "y", "yes"), proposal.option)
    if not choices:
        return None
    if proposal.option.is_usable:
        from agent.app.setup.text import in_two_lines

        print(f"\n{_fitted(in_two_lines(proposal.option), sys.stderr)}", end="", file=sys.stderr)
    return _asked(choices, proposal.option.is_usable)


def _asked(choices: "dict[str, Option]", has_default: bool) -> "Option | None":
    numbers = [key for key in choices if key.isdecimal()]
    others = f", or {', '.join(numbers)} for an alternative" if numbers else ""
    question = f"Do this? [Y/n{others}] " if has_default else f"Which? [{', '.join(numbers)}, n for none] "
    while True:
        print(question, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        answer = line.strip().lower()
        if not line or answer in ("n", "no", "q"):
            print("nothing was done", file=sys.stderr)
            return None
        if answer in choices:
            return choices[answer]


def _carry_out(
    option: "Option", project: Path, arguments: argparse.Namespace, shown: "dict[str, object] | None"
) -> int:
    import signal

    from agent.app.setup.steps import SetupRun
    from agent.cli.progress import ProgressLine
    from agent.core.errors import AgentError

    _require_usable(option)
    # Being asked to end is the same as Ctrl-C: what was done is kept, and the person is told how to go on.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    work = SetupRun(option=option, environment=os.environ, line=ProgressLine(), project=project)
    try:
        work.run()
    except KeyboardInterrupt:
        print(f"\n{_how_to_go_on(work)}", file=sys.stderr)
        raise
    except AgentError:
        print(_how_to_go_on(work), file=sys.stderr)
        raise
    if shown is not None:
        _print_json({**shown, "steps": _steps_json(work), "measured": _measured_json(work)})
    print(_ready(work), file=sys.stderr)
    return 0


def _require_usable(option: "Option") -> None:
    """Raises what fits the first thing that is in the way, before anything is begun."""
    from agent.core.errors import AgentError, ModelFileError, ServerError

    if option.is_usable:
        return
    first = option.obstacles[0]
    kinds: dict[str, type[AgentError]] = {"file": ModelFileError, "disk": ModelFileError}
    raise kinds.get(first.kind, ServerError)(f"{option.profile}: {first.message}", first.hint)


def _how_to_go_on(work: "SetupRun") -> str:
    name = work.option.profile
    lines = [f"stopped at: {work.current or 'the end'}. What was done is kept; to go on: agent setup"]
    if work.endpoint is not None:
        lines.append(f"the model answers already: agent --profile {name}")
    return "\n".join(lines)


def _ready(work: "SetupRun") -> str:
    return (
        f'ready: {work.option.profile}. Next: `agent` in a repository, or `agent run -p "..."`; '
        "`agent doctor` checks everything again"
    )


def _steps_json(work: "SetupRun") -> list[dict[str, str]]:
    return [{"step": one.name, "state": one.state, "detail": one.detail} for one in work.results]


def _measured_json(work: "SetupRun") -> "dict[str, object] | None":
    from dataclasses import asdict

    return asdict(work.speed) if work.speed else None


def _print_json(table: object) -> None:
    import json

    print(json.dumps(table, indent=2, default=str))
