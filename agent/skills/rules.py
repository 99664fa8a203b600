"""What `allowed-tools` of a skill means here, where other programs have other names for tools."""

import re

_NAMES = {
    "bash": "shell",
    "shell": "shell",
    "read": "read",
    "notebookread": "read",
    "view": "read",
    "edit": "edit",
    "multiedit": "edit",
    "write": "write",
    "grep": "search",
    "search": "search",
    "ls": "read",
    "glob": "glob",
}
_WORD = re.compile(r"(?P<tool>[\w*.:/-]+)(?:\((?P<pattern>.*)\))?")
_OF_A_SERVER = re.compile(r"mcp__(?P<server>[\w-]+?)(?:__(?P<tool>[\w-]+|\*))?")


def as_rule(word: str) -> str:
    """The permission rule for one word of `allowed-tools`; empty where there is no such tool here.

    `Bash(git:*)` becomes `shell(git *)`, and `mcp__SERVER__TOOL` loses the prefix that tools of MCP servers
    have elsewhere; without a tool all of that server are meant. A word that would allow everything is no
    rule.
    """
    found = _WORD.fullmatch(word.strip())
    if found is None:
        return ""
    tool = _NAMES.get(found["tool"].lower(), "")
    if not tool and found["pattern"] is None:
        return _server_rule(found["tool"])
    if not tool:
        return ""
    pattern = (found["pattern"] or "").strip()
    if tool == "shell":
        pattern = re.sub(r":\*$", " *", pattern)
    return f"{tool}({pattern})" if pattern and pattern not in ("*", "**") else tool


def _server_rule(word: str) -> str:
    found = _OF_A_SERVER.fullmatch(word)
    return f"{found['server']}__{found['tool'] or '*'}" if found is not None else ""
