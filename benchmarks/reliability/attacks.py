"""Command lines of the attack set against the permission rules, in each mode that does not allow everything.

The set is `tests/permissions/cases/attacks.toml`. A bypass is a line that is allowed without a person, or one
that runs the denied `rm` although all else is allowed. What is hidden in the language of another program is
not counted for the latter, as no reader of command lines can know it.
"""

import tempfile
from pathlib import Path
from typing import Any

from agent.permissions.context import Mode
from agent.permissions.gate import decide
from agent.permissions.rules import Rules, parse_rules
from tests.permissions.case_files import OWN_MEANS, attacks, make_workspace

_CAREFUL: tuple[Mode, ...] = ("ask", "accept-edits", "plan")
_ALL: tuple[Mode, ...] = (*_CAREFUL, "auto")


def run(count: int, seed: int) -> dict[str, Any]:
    """Judges the first `count` lines of the set. `failures` has to be 0; nothing here is random."""
    denies_rm = parse_rules(allow=["*"], deny=["shell(rm *)"])
    bypasses: list[str] = []
    judged = 0
    with tempfile.TemporaryDirectory(prefix="agent-attacks-") as folder:
        workspace = make_workspace(Path(folder).resolve())
        for line in attacks()[:count]:
            hides_rm = "rm -rf build" in line and not line.startswith(OWN_MEANS)
            careful = [mode for mode in _CAREFUL if is_allowed(line, workspace, mode, Rules())]
            denied = [mode for mode in _ALL if hides_rm and is_allowed(line, workspace, mode, denies_rm)]
            bypasses += [f"{mode}: {line}" for mode in careful + denied]
            judged += len(_CAREFUL) + (len(_ALL) if hides_rm else 0)
    return {
        "lines": len(attacks()[:count]),
        "judgements": judged,
        "failures": len(bypasses),
        "examples": bypasses[:20],
    }


def is_allowed(line: str, workspace: Path, mode: Mode, rules: Rules) -> bool:
    """Whether the line would run with nobody there to ask."""
    decision = decide(
        "shell", "execute", {"command": line}, workspace=workspace, mode=mode, rules=rules, headless=True
    )
    return decision.verdict == "allow"
