"""Which argument of a call says most about it."""

from collections.abc import Mapping
from typing import Any

from agent.core.edited_paths import paths_edited

_TELLING = ("command", "pattern", "path", "query", "url", "name", "question", "text")


def telling_argument(arguments: Mapping[str, Any]) -> str:
    """The one value that a person wants to see, with a second one where it changes the meaning."""
    for key in _TELLING:
        if arguments.get(key):
            value = str(arguments[key])
            where = arguments.get("path") if key == "pattern" and arguments.get("path") != "." else None
            return f"{value} in {where}" if where else f"{value}{_lines(arguments) if key == 'path' else ''}"
    if paths := paths_edited(arguments):
        return ", ".join(paths)
    short = [f"{key}={value}" for key, value in arguments.items() if len(str(value)) <= 200]
    return " ".join(short)


def _lines(arguments: Mapping[str, Any]) -> str:
    first = arguments.get("offset") or arguments.get("start") or arguments.get("first_line")
    return f":{first}" if isinstance(first, int) and first > 1 else ""
