"""The MCP servers of a session: which there are, what the model is offered of them, and their end."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent.app.files.authorship import Authorship, OwnCalls
from agent.app.mcp.questions import Questions
from agent.config.load import find_project_root
from agent.config.model import Settings
from agent.core.errors import UsageError
from agent.core.events import Event, Notice
from agent.core.tool import Tool
from agent.permissions.rules import Rules, parse_rules
from agent.resources import state_folder

if TYPE_CHECKING:
    from agent.mcp.catalogue import Catalogue
    from agent.mcp.config import ServerSpec
    from agent.mcp.pool import Pool
    from agent.mcp.sign_in import Signing

MCP_FILE = ".mcp.json"
_LARGEST_FILE_BYTES = 1024 * 1024
_MOST_NOTICES = 5


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project's `.mcp.json` as it was read once."""

    path: Path
    content: bytes
    trusted: bool


@dataclass(frozen=True, slots=True)
class FoundServers:
    """All servers that may be used in a folder, by name, and lines about those that may not.

    `off` are the names of those that the configuration switches off.
    """

    specs: "tuple[ServerSpec, ...]" = ()
    off: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(slots=True)
class McpServers:
    """The MCP side of one session. Without a configured server it is empty and costs nothing."""

    tools: tuple[Tool, ...] = ()
    pool: "Pool | None" = None
    rules: Rules = field(default_factory=Rules)
    catalogue: "Catalogue | None" = None
    off: tuple[str, ...] = ()
    questions: Questions = field(default_factory=lambda: Questions(emit=lambda _: None))

    def with_tools(self, tools: Sequence[Tool], authorship: Authorship) -> tuple[Tool, ...]:
        """All tools, those of MCP before the last, which ends a task."""
        return (*tools[:-1], *(OwnCalls(tool, authorship) for tool in self.tools), *tools[-1:])

    async def close(self) -> None:
        """Ends every server that was started."""
        if self.pool is not None:
            await self.pool.close()


async def open_mcp(
    workspace: Path,
    settings: Settings,
    *,
    environment: Mapping[str, str],
    emit: Callable[[Event], None],
) -> McpServers:
    """Prepares the servers of a session; none is started before somebody asks for something.

    Args:
        environment: of the servers' processes. Variables in the configuration are the person's own.
        emit: takes notices about servers and tools that are left out, and questions of servers.
    """
    questions = Questions(emit=emit)
    if not settings.mcp.servers and not (find_project_root(workspace) / MCP_FILE).is_file():
        return McpServers(questions=questions)
    loop = asyncio.get_running_loop()
    count = 0

    def report(text: str) -> None:
        nonlocal count
        count += 1
        if count > _MOST_NOTICES + 1:
            return
        shown = text if count <= _MOST_NOTICES else "there is more about MCP; `agent mcp test NAME` tells it"
        loop.call_soon_threadsafe(emit, Notice(text=shown, level="warning"))

    return await asyncio.to_thread(_prepare, workspace, settings, environment, report, questions)


def has_server(workspace: Path, settings: Settings, name: str) -> bool:
    """Whether sessions in a folder have an MCP server of that name. Reads files."""
    return any(spec.name == name for spec in find_servers(workspace, settings, os.environ).specs)


def _prepare(
    workspace: Path,
    settings: Settings,
    environment: Mapping[str, str],
    report: Callable[[str], None],
    questions: Questions,
) -> McpServers:
    found = find_servers(workspace, settings, os.environ)
    for notice in found.notices:
        report(notice)
    if not found.specs:
        return McpServers(off=found.off, questions=questions)
    from agent.mcp.catalogue import Catalogue
    from agent.mcp.connection import Surroundings
    from agent.mcp.pool import Pool

    around = Surroundings(
        workspace=workspace,
        environment=environment,
        variables=os.environ,
        ask=questions.ask,
        signing=signing(os.environ),
    )
    pool = Pool(found.specs, around, state=state_folder(), report=report)
    catalogue = Catalogue(pool, report=report)
    # Looking for tools is part of having configured the server; calls are asked about one by one.
    rules = parse_rules(allow=("mcp_find",), source="the MCP servers of this session")
    return McpServers(catalogue.tools, pool, rules, catalogue, found.off, questions)


def signing(environment: Mapping[str, str]) -> "Signing":
    """The sign-ins of this person, with their tokens in the data folder."""
    from agent.mcp.sign_in import Signing
    from agent.resources import data_folder

    return Signing(data_folder(environment) / "mcp" / "tokens")


def find_servers(workspace: Path, settings: Settings, environment: Mapping[str, str]) -> FoundServers:
    """The servers of the settings and of the project's `.mcp.json`, sorted by name. Reads files.

    A name in the settings wins; there `enabled = false` also switches off one of the project's file. What
    is wrong with one server is a notice and leaves the others.
    """
    from agent.mcp.config import parse_server

    specs: dict[str, ServerSpec] = {}
    notices: list[str] = []
    off: set[str] = set()
    for spec in _of_the_project(find_project_root(workspace), environment, notices):
        if spec.enabled:
            specs[spec.name] = spec
        else:
            off.add(spec.name)
    for name, server in settings.mcp.servers.items():
        specs.pop(name, None)
        off.discard(name)
        if not server.enabled:
            off.add(name)
            continue
        try:
            specs[name] = parse_server(name, server.model_dump(), "configuration")
        except UsageError as error:
            notices.append(error.message)
    return FoundServers(tuple(specs[name] for name in sorted(specs)), tuple(sorted(off)), tuple(notices))


def _of_the_project(root: Path, environment: Mapping[str, str], notices: list[str]) -> "list[ServerSpec]":
    from agent.mcp.config import parse_mcp_json

    try:
        file = read_project_file(root, environment)
        if file is None:
            return []
        specs, problems = parse_mcp_json(file.content, str(file.path))
    except UsageError as error:
        notices.append(error.message)
        return []
    if not file.trusted:
        names = ", ".join(spec.name for spec in specs)
        if names:
            notices.append(
                f"{file.path}: the MCP servers {names} are not used; `agent trust` shows and allows them"
            )
        return []
    notices += problems
    return specs


def read_project_file(root: Path, environment: Mapping[str, str]) -> ProjectFile | None:
    """The `.mcp.json` of the project at `root`, and whether it is trusted as it is; None where there is none.

    Raises:
        UsageError: it cannot be read, or the record of trust is damaged.
    """
    from agent.config.layers import read_file
    from agent.config.trust import TrustStore

    path = root / MCP_FILE
    content = read_file(path)
    if content is None:
        return None
    return ProjectFile(path, content, TrustStore.of(environment).trusts(path, content))


def describe_for_trust(file: ProjectFile) -> list[str]:
    """What a project's `.mcp.json` would start or ask, line by line, for a person to agree to.

    Raises:
        UsageError: it cannot be understood.
    """
    from agent.config.text import printable
    from agent.mcp.config import parse_mcp_json

    specs, problems = parse_mcp_json(file.content, str(file.path))
    lines = [f"{printable(str(file.path))} would use these MCP servers:"]
    for spec in specs:
        more = [f"with {', '.join(sorted(spec.env))} set"] if spec.env else []
        more += [f"in {spec.cwd}"] if spec.cwd else []
        what = spec.url or " ".join([spec.command, *spec.args])
        lines.append(printable(f"  ! {spec.name}: {'; '.join([what, *more])}"))
    return [*lines, *(printable(f"  {problem}") for problem in problems)]
