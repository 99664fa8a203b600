"""MCP servers that an editor hands over, as tables in the form of `.mcp.json`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from acp.schema import HttpMcpServer, McpServerStdio, SseMcpServer

_LONGEST_NAME = 32
_UNFIT = re.compile(r"[^A-Za-z0-9-]+")

McpServer = McpServerStdio | HttpMcpServer | SseMcpServer


def tables_of(servers: Sequence[McpServer]) -> dict[str, Mapping[str, Any]]:
    """Servers by a name that tools may carry; where two would have the same one, the second gets a number."""
    tables: dict[str, Mapping[str, Any]] = {}
    for server in servers:
        tables[_fit_name(server.name, tables)] = _table(server)
    return tables


def _table(server: McpServer) -> dict[str, Any]:
    if isinstance(server, McpServerStdio):
        env = {one.name: one.value for one in server.env}
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": env}
    headers = {one.name: one.value for one in server.headers}
    return {"type": server.type, "url": server.url, "headers": headers}


def _fit_name(name: str, taken: Mapping[str, Any]) -> str:
    fit = _UNFIT.sub("-", name).strip("-")[:_LONGEST_NAME] or "server"
    number = 2
    unique = fit
    while unique in taken:
        tail = f"-{number}"
        unique = f"{fit[: _LONGEST_NAME - len(tail)]}{tail}"
        number += 1
    return unique
