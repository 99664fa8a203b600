"""Reads the files in `cases/`."""

import tomllib
from pathlib import Path

CASES = Path(__file__).with_name("cases")
MODES = ("ask", "accept-edits", "auto", "plan")
VERDICTS = {"a": "allow", "?": "ask", "d": "deny"}


def verdict_cases() -> list[tuple[str, dict[str, str]]]:
    """Command lines with the verdict that each mode should give."""
    cases = []
    for line in (CASES / "verdicts.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        letters, command = line.split(" || ", 1)
        cases.append(
            (command, dict(zip(MODES, (VERDICTS[letter] for letter in letters.split()), strict=True)))
        )
    return cases


def attacks() -> list[str]:
    """Command lines that must not be allowed without a person."""
    groups = tomllib.loads((CASES / "attacks.toml").read_text(encoding="utf-8"))
    return [command for commands in groups.values() for command in commands]
