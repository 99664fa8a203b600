"""`agent doctor`: looks at everything a session needs, and says for each finding what to do."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.app.doctor.finding import Finding

DESCRIPTION = """Looks at Python, settings, profile, engine, model files, memory, GPU, disk, ports, leftovers
and terminal. Changes nothing. A running server of the profile is asked a few questions, too.

exit codes: 0 no problem (warnings may be), 1 at least one problem
"""
_MARKS = {"ok": "ok", "warning": "warning", "problem": "PROBLEM"}
_COLOURS = {"ok": "32", "warning": "33", "problem": "31"}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="check everything, each finding with its remedy",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--profile", metavar="NAME", default="", help="instead of the one of your settings")
    parser.add_argument(
        "--live",
        action="store_true",
        help="also ask a server that has to be started for it, or that somebody else runs",
    )
    parser.add_argument("--json", action="store_true", help="the findings as JSON on stdout")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the findings as they come; the exit code says whether there is a problem."""
    from agent.app.doctor.finding import Outside
    from agent.app.doctor.visit import visit
    from agent.cli.progress import ProgressLine
    from agent.config.load import find_project_root

    found: list[Finding] = []
    # Without a terminal nobody waits for a sign of life, and the findings are enough.
    line = ProgressLine() if sys.stderr.isatty() else None

    def say(finding: "Finding") -> None:
        found.append(finding)
        if arguments.json:
            return
        if line:
            line.end()
        print(_shown(finding), flush=True)

    try:
        visit(
            Outside(project=find_project_root(Path.cwd())),
            say,
            profile=arguments.profile,
            live=arguments.live,
            progress=line.show if line else lambda text: None,
        )
    finally:
        if line:
            line.end()
    counts = {level: sum(one.level == level for one in found) for level in _MARKS}
    if arguments.json:
        _print_json(found, counts)
    else:
        print(_summary(counts))
    return 1 if counts["problem"] else 0


def _shown(finding: "Finding") -> str:
    from agent.cli.wrapping import terminal_width, wrapped

    mark = f"{_MARKS[finding.level]:<8}"
    remedy = f" -> {finding.remedy}" if finding.remedy else ""
    text = f"{' '.join(finding.message.split())}{remedy}"
    text = wrapped(text, terminal_width(sys.stdout), hang=len(mark), begin=len(mark))
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        mark = f"\x1b[{_COLOURS[finding.level]}m{mark}\x1b[0m"
    return f"{mark}{text}"


def _summary(counts: dict[str, int]) -> str:
    problems, warnings = counts["problem"], counts["warning"]
    if not problems and not warnings:
        return f"all is well: {counts['ok']} checks"
    return f"{_number(problems, 'problem')}, {_number(warnings, 'warning')}, {counts['ok']} ok"


def _number(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


def _print_json(found: "list[Finding]", counts: dict[str, int]) -> None:
    import json
    from dataclasses import asdict

    print(json.dumps({**counts, "findings": [asdict(one) for one in found]}, indent=2))
