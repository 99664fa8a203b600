"""Services of a live session about its MCP servers.

| name | arguments | gives |
|---|---|---|
| `mcp` | | an `McpReport` |
| `mcp` | `name` | an `McpDetail` of that server |
| `mcp` | `name`, `action` = reconnect, enable or disable | the same, after that was done |

What the model is offered is decided when a session begins and stays the same to the byte, because a prompt
that changes at its beginning is read again as a whole. So a server that is switched off is ended and refused,
and its names stay in the prompt; one that the configuration switches off is there from the next session on.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.app.mcp.servers import McpServers
from agent.core.errors import UsageError
from agent.core.outside_text import one_line
from agent.resources import state_folder

if TYPE_CHECKING:
    from agent.mcp.catalogue import Catalogue
    from agent.mcp.pool import Pool

ACTIONS = ("reconnect", "enable", "disable")
_LOG_LINES = 30
_OFF_IN_SETTINGS = "off in the settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerRow:
    """One server. `tools` and `tokens` (of their schemas, estimated) are None before the first connection.

    `seconds` is what evaluating these tokens takes at the speed measured in this session; None if unknown.
    """

    name: str
    state: str
    tools: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpReport:
    """All servers. `prompt_tokens` (estimated) and `prompt_seconds` are what they add to each prompt."""

    servers: tuple[McpServerRow, ...]
    prompt_tokens: int = 0
    prompt_seconds: float | None = None
    is_direct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class McpDetail:
    """`what` is the command or address, `tools` are (name, description) as the model knows them."""

    row: McpServerRow
    what: str
    about: str
    tools: tuple[tuple[str, str], ...]
    log_file: Path
    log: tuple[str, ...]


class McpServices:
    """`rate` gives the measured speed of prefill in tokens a second, None while there is none."""

    def __init__(self, mcp: McpServers, rate: Callable[[], float | None]) -> None:
        self._mcp = mcp
        self._rate = rate

    async def mcp(self, arguments: Mapping[str, Any]) -> McpReport | McpDetail:
        name, action = arguments.get("name") or "", arguments.get("action") or ""
        if not name:
            return await asyncio.to_thread(self._report)
        catalogue = self._catalogue_with(str(name))
        if action:
            await self._act(catalogue, str(name), str(action))
        return await asyncio.to_thread(self._detail, catalogue, str(name))

    def _catalogue_with(self, name: str) -> "Catalogue":
        catalogue = self._mcp.catalogue
        names = [spec.name for spec in catalogue.pool.specs] if catalogue is not None else []
        if catalogue is not None and name in names:
            return catalogue
        if name in self._mcp.off:
            raise UsageError(
                f"the MCP server {name} is switched off in the settings",
                f"`agent config set mcp.servers.{name}.enabled true`, then /new",
            )
        raise UsageError(
            f"there is no MCP server {one_line(name, 60)!r} in this session",
            f"there are: {', '.join(names) or 'none'}",
        )

    async def _act(self, catalogue: "Catalogue", name: str, action: str) -> None:
        pool = catalogue.pool
        if action == "disable":
            await pool.switch_off(name)
        elif action == "enable":
            pool.switch_on(name)
        elif action == "reconnect":
            await pool.reconnect(name)
            catalogue.take_in(name)
        else:
            raise UsageError(f"an MCP server has no action {one_line(action, 40)!r}", ", ".join(ACTIONS))

    def _report(self) -> McpReport:
        off = tuple(McpServerRow(name=name, state=_OFF_IN_SETTINGS) for name in self._mcp.off)
        catalogue = self._mcp.catalogue
        if catalogue is None:
            return McpReport(servers=off)
        from agent.app.mcp.admin import offer_tokens

        tokens = offer_tokens(catalogue)
        rows = [self._row(catalogue, spec.name) for spec in catalogue.pool.specs]
        return McpReport(
            servers=(*rows, *off),
            prompt_tokens=tokens,
            prompt_seconds=self._seconds(tokens),
            is_direct=catalogue.is_direct,
        )

    def _row(self, catalogue: "Catalogue", name: str) -> McpServerRow:
        from agent.app.mcp.admin import tool_tokens

        pool: Pool = catalogue.pool
        tools = catalogue.of(name)
        tokens = None if tools is None else sum(tool_tokens(tool) for tool in tools)
        return McpServerRow(
            name=name,
            state=pool.state(name),
            tools=None if tools is None else len(tools),
            tokens=tokens,
            seconds=None if tokens is None else self._seconds(tokens),
            why=pool.why(name),
        )

    def _detail(self, catalogue: "Catalogue", name: str) -> McpDetail:
        from agent.mcp.log import log_of

        spec = next(spec for spec in catalogue.pool.specs if spec.name == name)
        log = log_of(state_folder(), name)
        return McpDetail(
            row=self._row(catalogue, name),
            what=spec.url or " ".join([spec.command, *spec.args]),
            about=catalogue.pool.about(name),
            tools=tuple((tool.name, one_line(tool.description, 200)) for tool in catalogue.of(name) or ()),
            log_file=log.path,
            log=tuple(log.last_lines(_LOG_LINES)),
        )

    def _seconds(self, tokens: int) -> float | None:
        rate = self._rate()
        return tokens / rate if rate else None
