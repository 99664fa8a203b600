"""What `agent mcp` shows and tries: servers one by one, outside of a session."""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.app.mcp.servers import FoundServers, find_servers, read_project_file
from agent.app.mcp.servers import signing as person_signing
from agent.app.turns.workbench import tool_environment
from agent.config.load import find_project_root, load_settings
from agent.core.errors import UsageError
from agent.llm.tokens import estimate
from agent.mcp.adapter import OfferedTool, offered_tools
from agent.mcp.catalogue import CallTool, Catalogue, FindTool
from agent.mcp.config import ServerSpec, parse_mcp_json
from agent.mcp.connection import Surroundings
from agent.mcp.importing import foreign_servers
from agent.mcp.known import KnownServers
from agent.mcp.log import log_of
from agent.mcp.pool import Pool
from agent.mcp.sign_in import Signing
from agent.resources import state_folder

_SESSIONS_LOOKED_AT = 10
_TELLING_TOKENS = 200
_OPENCODE_FILES = ("opencode.json", "opencode.jsonc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """One server for a list. `tokens` is what its tools would take with their schemas; None if unknown."""

    spec: ServerSpec
    tools: int | None
    tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All servers of a folder. `prompt_tokens` is what they add to each session before one is used.

    `off` are the names of those that the configuration switches off. `rate` is the speed of prefill that was
    measured last in this folder, in tokens a second; None if never.
    """

    rows: tuple[ServerRow, ...]
    off: tuple[str, ...]
    notices: tuple[str, ...]
    prompt_tokens: int
    is_direct: bool
    rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How connecting to one server went."""

    about: str
    seconds: float
    tools: tuple[OfferedTool, ...]
    problems: tuple[str, ...]


def overview(workspace: Path) -> Overview:
    """Reads the configuration and what is remembered; starts nothing. Raises UsageError."""
    found, notices = _found(workspace)
    specs = list(found.specs)
    known = KnownServers.of(state_folder())
    rows = []
    for spec in specs:
        remotes = known.tools(spec)
        tools = offered_tools(spec, remotes)[0] if remotes is not None else None
        tokens = sum(tool_tokens(tool) for tool in tools) if tools is not None else None
        rows.append(ServerRow(spec=spec, tools=None if tools is None else len(tools), tokens=tokens))
    pool = pool_of(specs, workspace)
    catalogue = Catalogue(pool)
    return Overview(
        rows=tuple(rows),
        off=found.off,
        notices=notices,
        prompt_tokens=offer_tokens(catalogue),
        is_direct=catalogue.is_direct,
        rate=last_prefill_rate(workspace),
    )


def server_named(workspace: Path, name: str) -> ServerSpec:
    """The server of that name. Raises UsageError where there is none, and where it is switched off."""
    servers, _ = _found(workspace)
    if name in servers.off:
        raise UsageError(
            f"the MCP server {name} is switched off", "`enabled = true` in its table switches it on"
        )
    found = next((spec for spec in servers.specs if spec.name == name), None)
    if found is None:
        if _waits_for_trust(workspace, name):
            raise UsageError(
                f"the MCP server {name} comes with this project, which is not trusted",
                "`agent trust` shows what it would start, and allows it",
            )
        names = ", ".join(spec.name for spec in servers.specs)
        hint = f"there are: {names}" if names else f"`agent mcp add {name} -- COMMAND` adds it"
        raise UsageError(f"there is no MCP server {name!r} that may be used here", hint)
    return found


def known_tools(spec: ServerSpec) -> tuple[list[OfferedTool], list[str]] | None:
    """The usable tools of the last connection, and what is left out; None before the first one."""
    remotes = KnownServers.of(state_folder()).tools(spec)
    return None if remotes is None else offered_tools(spec, remotes)


async def try_server(spec: ServerSpec, workspace: Path) -> Trial:
    """Connects, lists, remembers the tools, and ends the server again. Raises AgentError."""
    problems: list[str] = []
    loop = asyncio.get_running_loop()
    pool = pool_of([spec], workspace, problems)
    began = loop.time()
    try:
        listing = await pool.list_tools([spec.name])
        if spec.name in listing.failures:
            raise listing.failures[spec.name]
        seconds = loop.time() - began
        tools, left_out = offered_tools(spec, listing.tools[spec.name])
        about = pool.about(spec.name)
    finally:
        await pool.close()
    return Trial(about=about, seconds=seconds, tools=tuple(tools), problems=(*problems, *left_out))


def last_log_lines(name: str, count: int, *, since: int = 0, times: bool = False) -> tuple[Path, list[str]]:
    """The log of a server and its last lines, of those written after `since`, see `log_end`."""
    log = log_of(state_folder(), name)
    return log.path, log.last_lines(count, since=since, times=times)


def log_end(name: str) -> int:
    """Where in the log of a server begins what it says from now on."""
    return log_of(state_folder(), name).end()


def foreign_files(workspace: Path, environment: Mapping[str, str]) -> list[Path]:
    """Files of other programs that exist and may have servers."""
    home = Path(environment.get("HOME") or "~").expanduser()
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    of_programs = (config, home / "Library" / "Application Support")  # the second one on macOS
    root = find_project_root(workspace)
    places = [
        home / ".claude.json",
        *(folder / "Claude" / "claude_desktop_config.json" for folder in of_programs),
        home / ".cursor" / "mcp.json",
        *(config / "opencode" / name for name in _OPENCODE_FILES),
        *(folder / "Code" / "User" / "mcp.json" for folder in of_programs),
        home / ".gemini" / "settings.json",
        root / ".vscode" / "mcp.json",
        root / ".cursor" / "mcp.json",
        *(root / name for name in _OPENCODE_FILES),
    ]
    return [path for path in places if path.is_file()]


def read_foreign(path: Path) -> tuple[list[ServerSpec], list[str]]:
    """The servers of another program's file, and a line for each that cannot be used. Raises UsageError."""
    from agent.config.layers import read_file

    content = read_file(path)
    if content is None:
        raise UsageError(f"{path} does not exist")
    return foreign_servers(content, str(path))


def as_table(spec: ServerSpec) -> dict[str, object]:
    """`spec` as a table of our configuration, without what is the default."""
    table: dict[str, object] = {"type": "sse"} if spec.transport == "sse" else {}
    for key in ("command", "args", "env", "cwd", "url", "headers", "allow", "deny"):
        value = getattr(spec, key)
        if value:
            table[key] = dict(value) if isinstance(value, Mapping) else _plain(value)
    return table if spec.enabled else {**table, "enabled": False}


def last_prefill_rate(workspace: Path) -> float | None:
    """Tokens a second of the last long enough prompt that a session of this folder has measured."""
    from agent.session.catalogue import session_folders
    from agent.session.lines import read_lines
    from agent.session.store import EVENTS_NAME

    for folder in session_folders(state_folder(), workspace)[:_SESSIONS_LOOKED_AT]:
        try:
            steps = [line for line in read_lines(folder / EVENTS_NAME) if line.get("type") == "step_finished"]
        except OSError:
            continue
        for step in reversed(steps):
            rate = _rate_of(step.get("stats"))
            if rate is not None:
                return rate
    return None


def _rate_of(stats: object) -> float | None:
    if not isinstance(stats, dict):
        return None
    tokens, seconds = stats.get("prompt_tokens"), stats.get("prompt_seconds")
    if not isinstance(tokens, int | float) or not isinstance(seconds, int | float):
        return None
    return tokens / seconds if tokens >= _TELLING_TOKENS and seconds > 0 else None


def _waits_for_trust(workspace: Path, name: str) -> bool:
    file = read_project_file(find_project_root(workspace), os.environ)
    if file is None or file.trusted:
        return False
    specs, _ = parse_mcp_json(file.content, str(file.path))
    return any(spec.name == name for spec in specs)


def _found(workspace: Path) -> tuple[FoundServers, tuple[str, ...]]:
    loaded = load_settings(find_project_root(workspace), os.environ, {})
    found = find_servers(workspace, loaded.settings, os.environ)
    return found, (*loaded.notices, *found.notices)


def pool_of(
    specs: list[ServerSpec],
    workspace: Path,
    problems: list[str] | None = None,
    *,
    signing: Signing | None = None,
) -> Pool:
    """Servers outside of a session. `problems` takes lines about them; `signing` is the person's own."""
    around = Surroundings(
        workspace=workspace,
        environment=tool_environment(),
        variables=os.environ,
        signing=signing or person_signing(os.environ),
    )
    report = problems.append if problems is not None else lambda _: None
    return Pool(specs, around, state=state_folder(), report=report)


def offer_tokens(catalogue: Catalogue) -> int:
    if catalogue.is_direct:
        return sum(tool_tokens(tool) for tool in catalogue.all())
    return sum(
        estimate(json.dumps([tool.name, tool.description, tool.params.model_json_schema()]))
        for tool in catalogue.tools
        if isinstance(tool, FindTool | CallTool)
    )


def tool_tokens(tool: OfferedTool) -> int:
    return estimate(json.dumps([tool.name, tool.description, tool.schema], ensure_ascii=False)) + 10


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
