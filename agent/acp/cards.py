"""Calls of tools as an editor shows them: kind, title, places in files, and what came of them."""

import os
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from acp.helpers import ToolCallContentVariant, text_block, tool_content, tool_diff_content
from acp.schema import ToolCallLocation, ToolKind

from agent.core.edited_paths import paths_edited
from agent.core.events import ApprovalRequest, ToolFinished
from agent.core.outside_text import fenced, one_line, tidy
from agent.core.tool import FileDiff

KINDS: dict[str, ToolKind] = {
    "read": "read",
    "skill": "read",
    "search": "search",
    "glob": "search",
    "outline": "search",
    "mcp_find": "search",
    "edit": "edit",
    "multi_edit": "edit",
    "apply_patch": "edit",
    "write": "edit",
    "shell": "execute",
    "task": "think",
}
MOST_CHARACTERS = 20_000
_LONGEST_TITLE = 120
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def kind_of(tool: str) -> ToolKind:
    return KINDS.get(tool, "other")


def title_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """One line, in the Markdown that editors draw it with."""
    path = str(arguments.get("path") or "")
    match tool:
        case "shell":
            return _code(str(arguments.get("command") or "a command"))
        case "read":
            return f"Read {_plain(path)}{_span(arguments)}"
        case "edit":
            return f"Edit {_plain(path)}"
        case "multi_edit":
            return f"Edit {_plain(', '.join(paths_edited(arguments)))}"
        case "write":
            return f"Write {_plain(path)}"
        case "search" | "glob":
            what = str(arguments.get("pattern") or arguments.get("query") or "")
            where = f" in {_plain(path)}" if path and path != "." else ""
            return f"{'Search' if tool == 'search' else 'Find'} {_code(what)}{where}"
    if tool == "mcp_call" and arguments.get("name"):
        return _plain(str(arguments["name"]))
    shown = ", ".join(f"{name}={value}" for name, value in arguments.items() if not isinstance(value, dict))
    return _plain(f"{tool} {shown}".rstrip())


def locations_of(arguments: Mapping[str, Any], workspace: Path) -> list[ToolCallLocation]:
    """Where a call looks or writes, as far as its arguments tell."""
    path = arguments.get("path")
    if not isinstance(path, str) or not path.strip():
        return []
    start = arguments.get("start")
    line = start if isinstance(start, int) and start > 0 else None
    return [ToolCallLocation(path=absolute(path, workspace), line=line)]


def changed_places(diffs: Sequence[FileDiff], workspace: Path) -> list[ToolCallLocation]:
    """The first changed line of each file."""
    return [ToolCallLocation(path=absolute(diff.path, workspace), line=first_change(diff)) for diff in diffs]


def first_change(diff: FileDiff) -> int:
    """The first line that differs, counted from 1."""
    before, after = (diff.before or "").splitlines(), (diff.after or "").splitlines()
    pairs = zip_longest(before, after)
    return next((number for number, (one, other) in enumerate(pairs, 1) if one != other), 1)


def absolute(path: str, workspace: Path) -> str:
    """Editors want whole paths. `..` is taken out, links are left as they are."""
    return os.path.normpath(workspace / path)


def diff_content(diffs: Sequence[FileDiff], workspace: Path) -> list[ToolCallContentVariant]:
    return [
        tool_diff_content(absolute(diff.path, workspace), diff.after or "", diff.before) for diff in diffs
    ]


def text_content(text: str) -> list[ToolCallContentVariant]:
    """Output as it was, in a fence that it cannot close; the end of what is too long."""
    clean = tidy(_ESCAPES.sub("", text)).strip("\n")
    if not clean:
        return []
    if len(clean) > MOST_CHARACTERS:
        clean = f"…\n{clean[-MOST_CHARACTERS:]}"
    return [tool_content(text_block(fenced(clean)))]


def finished_content(event: ToolFinished, workspace: Path) -> list[ToolCallContentVariant]:
    """What a call came to. A change that was made says more than the sentence about it."""
    diffs = diff_content(event.diffs, workspace)
    return diffs if diffs and event.outcome == "ok" else [*diffs, *text_content(event.text)]


def question_content(request: ApprovalRequest, workspace: Path) -> list[ToolCallContentVariant]:
    """What a person has to see to say yes: why it is asked, the parsed commands, the change."""
    shown: list[ToolCallContentVariant] = []
    if request.reason:
        shown.append(tool_content(text_block(one_line(request.reason, 300))))
    if request.commands:
        shown.append(tool_content(text_block(fenced(tidy("\n".join(request.commands))))))
    return [*shown, *diff_content(request.diffs, workspace)]


def _span(arguments: Mapping[str, Any]) -> str:
    start, lines = arguments.get("start"), arguments.get("lines")
    if not isinstance(start, int):
        return ""
    return f":{start}-{start + lines - 1}" if isinstance(lines, int) and lines > 0 else f":{start}"


def _plain(text: str) -> str:
    return one_line(text, _LONGEST_TITLE) or "."


def _code(text: str) -> str:
    line = one_line(text, _LONGEST_TITLE)
    return line if "`" in line or not line else f"`{line}`"
