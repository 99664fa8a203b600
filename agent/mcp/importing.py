"""Servers from the files of other programs: Claude, Cursor, VS Code, OpenCode, Gemini CLI."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent.core.errors import UsageError
from agent.mcp.config import LONGEST_NAME, ServerSpec, parse_server
from agent.mcp.text import one_line

_COMMENT_OR_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_VARIABLE = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_UNKNOWN = re.compile(r"\$\{(?:input|workspaceFolder|userHome|command)\b[^}]*\}")


def foreign_servers(content: bytes, where: str) -> tuple[list[ServerSpec], list[str]]:
    """The servers of another program's file, and a line for each that cannot be used.

    Args:
        content: JSON, with or without comments.
        where: the file, for messages.

    Raises:
        UsageError: it is no JSON, or has no servers.
    """
    record = _parsed(content, where)
    found: dict[str, ServerSpec] = {}
    problems: list[str] = []
    for written, table in _tables(record):
        name = server_name(written)
        try:
            text = json.dumps(table)
            if _UNKNOWN.search(text):
                raise UsageError(f"{where}: {written} has a value that only its own program can fill in")
            plain = json.loads(_VARIABLE.sub(r"${\1}", text))
            found.setdefault(name, parse_server(name, plain, where))
        except UsageError as error:
            problems.append(f"{one_line(error.message, 200)}; it is left out")
    if not found and not problems:
        raise UsageError(f"{where} has no MCP servers", 'they stand below "mcpServers", "servers" or "mcp"')
    return list(found.values()), problems


def server_name(written: str) -> str:
    """A name that can be used here, from one that another program took."""
    plain = re.sub(r"[^A-Za-z0-9-]+", "-", written).strip("-")[:LONGEST_NAME].strip("-")
    return plain or "server"


def _parsed(content: bytes, where: str) -> Any:
    try:
        text = content.decode("utf-8-sig")
        try:
            return json.loads(text)
        except ValueError:
            plain = _COMMENT_OR_TEXT.sub(lambda m: m[0] if m[0].startswith('"') else " ", text)
            return json.loads(_TRAILING_COMMA.sub(lambda m: m[1] or "", plain))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is not valid JSON: {one_line(str(error), 120)}") from None


def _tables(record: Any) -> Iterator[tuple[str, Any]]:
    """Every server of a file, wherever programs keep them: at the top, below `mcp`, or by project."""
    if not isinstance(record, Mapping):
        return
    mcp = record.get("mcp")
    places = [record.get("mcpServers"), record.get("servers"), mcp]
    if isinstance(mcp, Mapping) and isinstance(mcp.get("servers"), Mapping):
        places = [mcp["servers"]]
    projects = record.get("projects")
    if isinstance(projects, Mapping):
        places += [item.get("mcpServers") for item in projects.values() if isinstance(item, Mapping)]
    for place in places:
        if isinstance(place, Mapping):
            yield from ((str(name), table) for name, table in place.items() if isinstance(table, Mapping))
