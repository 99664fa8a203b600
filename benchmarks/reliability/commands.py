"""Command lines against the permission rules. The oracle is bash: the programs that it really starts.

All programs on the PATH are stubs that note their names, and a few that start others. A bypass is a line that
starts a program although the rules deny it, or that starts one which the reader of lines did not report.
"""

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.permissions.gate import decide
from agent.permissions.rules import Rules, parse_rules
from agent.permissions.shell import analyse
from tests.permissions.bash_runner import BashRunner
from tests.permissions.command_lines import PROGRAMS, LineMaker
from tests.permissions.wrapper_lines import wrapper_line

_NOISE = (
    *"\"'`$(){}[]<>|&;#!*?~\\= \n\t",
    "$(",
    "${",
    "<<",
    "<(",
    "&&",
    "||",
    ";;",
    "\\\n",
    "$'",
    '"$(',
    "2>&1",
)
_HARMLESS = tuple(f"shell({name} *)" for name in ("echo", "true", "false", "cat", ":"))


def lines(count: int, seed: int) -> Iterator[str]:
    """Lines from plain to broken: made by a grammar, calls of wrappers, and both of them with damage."""
    source = random.Random(seed)
    maker = LineMaker(seed)
    for number in range(count):
        line = maker.line() if number % 3 else wrapper_line(source)
        yield damaged(line, source) if number % 4 == 0 else line


def damaged(line: str, source: random.Random) -> str:
    """A line with a few characters too many, too few or in another place."""
    for _ in range(source.randint(1, 3)):
        at = source.randrange(len(line) + 1)
        kind = source.random()
        if kind < 0.6:
            line = line[:at] + source.choice(_NOISE) + line[at:]
        elif kind < 0.85:
            line = line[:at] + line[at + 1 :]
        else:
            line = line[:at] + line[at // 2 : at] + line[at:]
    return line


def rules_against(program: str) -> Rules:
    """Everything may run but one program."""
    others = tuple(f"shell({name} *)" for name in PROGRAMS if name != program)
    return parse_rules(allow=(*others, *_HARMLESS), deny=(f"shell({program} *)",))


def run(count: int, seed: int) -> dict[str, Any]:
    """Compares `count` lines. Figures: how many were understood, allowed, started something, and got past."""
    source = random.Random(seed)
    against = {program: rules_against(program) for program in PROGRAMS}
    understood = allowed = started_any = 0
    bypasses: list[str] = []
    with tempfile.TemporaryDirectory(prefix="agent-commands-") as folder:
        runner = BashRunner(Path(folder))
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        for number, line in enumerate(lines(count, seed)):
            script = analyse(line)
            victim = source.choice(PROGRAMS)
            passes = _is_allowed(line, workspace, against[victim])
            understood += not script.is_unknown
            allowed += passes
            if script.is_unknown and not passes:
                continue
            started = runner.started_by(line)
            started_any += bool(started)
            reported = {(command.name or "").rpartition("/")[2] for command in script.commands}
            unseen = not script.is_unknown and not started <= reported
            denied = (passes and victim in started) or any(
                _is_allowed(line, workspace, against[program]) for program in started & against.keys()
            )
            if unseen or denied:
                bypasses.append(line)
            if number % 1000 == 0:
                sys.stderr.write(f"{number} lines, {len(bypasses)} bypasses\n")
    return {
        "lines": count,
        "understood": understood,
        "allowed": allowed,
        "started something": started_any,
        "failures": len(bypasses),
        "examples": bypasses[:20],
    }


def _is_allowed(line: str, workspace: Path, rules: Rules) -> bool:
    decision = decide(
        "shell", "execute", {"command": line}, workspace=workspace, mode="auto", rules=rules, headless=True
    )
    return decision.verdict == "allow"
