"""Checks the entries of `[[after_edit]]`; what they do is in `agent.edits`."""

import re
from typing import Any

PRESET_NAMES = ("ruff", "prettier", "gofmt", "rustfmt")
LONGEST_SECONDS = 600
_KEYS = ("use", "glob", "format", "check", "seconds")
_QUOTED_MARK = re.compile(r"""['"]\{file\}|\{file\}['"]""")


def check_entry(entry: Any) -> None:
    """Raises ValueError, worded to follow the name of the setting, where an entry is none."""
    table = {"use": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict):
        raise ValueError("needs the name of a formatter or a table for each entry")
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise ValueError(f"knows {', '.join(_KEYS)} of an entry, no {unknown[0]!r}")
    name = table.get("use")
    if name is not None and name not in PRESET_NAMES:
        raise ValueError(
            f"knows {', '.join(PRESET_NAMES)}, no {name!r}; others need glob, and format or check"
        )
    if name is None and not table.get("glob"):
        raise ValueError('needs the glob of the files that an entry is about, such as "*.py"')
    _check_globs(table.get("glob", "*"))
    if name is None and not (table.get("format") or table.get("check")):
        raise ValueError("needs a format or a check command for each entry, or both")
    for key in ("format", "check"):
        _check_command(key, table.get(key, ""))
    _check_seconds(table.get("seconds", 1))


def _check_seconds(seconds: Any) -> None:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= LONGEST_SECONDS:
        raise ValueError(f"needs the seconds of an entry as a number above 0, up to {LONGEST_SECONDS}")


def _check_globs(glob: Any) -> None:
    globs = [glob] if isinstance(glob, str) else glob
    if not isinstance(globs, list) or not globs or not all(isinstance(one, str) and one for one in globs):
        raise ValueError('needs the glob of an entry as a text or a list of texts, such as ["*.js", "*.ts"]')


def _check_command(key: str, command: Any) -> None:
    if not isinstance(command, str) or "\0" in command:
        raise ValueError(f"needs the {key} command of an entry as a text")
    if _QUOTED_MARK.search(command):
        raise ValueError(
            f"needs {{file}} without quotes in a {key} command; it is quoted where that is needed"
        )
    if key == "format" and command.strip() and "{file}" not in command:
        raise ValueError("needs {file} in a format command: only the file that was edited is formatted")
