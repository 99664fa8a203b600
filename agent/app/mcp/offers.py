"""What MCP servers offer a person: prompts as `/server:prompt`, documents as `@server:uri`.

| service | arguments | gives |
|---|---|---|
| `commands` | | the rows of `agent.app.services.extensions`, and a row for each known prompt |
| `expand` | `name`, `arguments` (optional) | the text to send; for `server:prompt` what the server writes |
| `resources` | | a list of `server:uri` that can be mentioned |

Menus show what is remembered of servers and start nothing; using a prompt or a document starts its server.
"""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.app.mcp.servers import McpServers
from agent.app.services.extensions import CommandRow, ExtensionServices
from agent.core.errors import AgentError, UsageError
from agent.core.outside_text import one_line

if TYPE_CHECKING:
    from agent.mcp.listing import Offer, PromptArgument, RemotePrompt
    from agent.mcp.pool import Pool

_MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class McpOffers:
    """`extensions` are the commands that are no prompts."""

    mcp: McpServers
    extensions: ExtensionServices

    async def commands(self, arguments: Mapping[str, Any]) -> list[CommandRow]:
        own = await self.extensions.commands(arguments)
        return [*own, *await asyncio.to_thread(self._prompt_rows)]

    async def expand(self, arguments: Mapping[str, Any]) -> str:
        name = str(arguments.get("name") or "").strip().removeprefix("/")
        server, _, prompt = name.partition(":")
        pool = self.mcp.pool
        if pool is None or not self.has_server_of(name):
            return await self.extensions.expand(arguments)
        rest = arguments.get("arguments") or ""
        if not isinstance(rest, str):
            raise UsageError("the 'arguments' of a command are one text")
        return await _prompt_text(pool, server, prompt, rest)

    def has_server_of(self, name: str) -> bool:
        """Whether `name` is `server:prompt` with a server of this session; nothing is started."""
        server, colon, _ = name.partition(":")
        return bool(colon) and self.mcp.pool is not None and _has(self.mcp.pool, server)

    async def resources(self, _: Mapping[str, Any]) -> list[str]:
        return await asyncio.to_thread(self._resource_names)

    def _prompt_rows(self) -> list[CommandRow]:
        return [
            CommandRow(
                command_name(server, prompt),
                one_line(prompt.description, 200),
                takes(prompt.arguments),
                "prompt",
                server,
            )
            for server, offer in _offers(self.mcp.pool)
            for prompt in offer.prompts
            if command_name(server, prompt)
        ][:_MOST_ROWS]

    def _resource_names(self) -> list[str]:
        return [
            f"{server}:{resource.uri}"
            for server, offer in _offers(self.mcp.pool)
            for resource in offer.resources
            if not resource.is_template and resource.uri.isprintable()
        ]


@dataclass(frozen=True, slots=True)
class McpDocuments:
    """Documents of servers for a message. What is no text is kept in `folder`."""

    mcp: McpServers
    folder: Path

    def names(self, word: str) -> bool:
        """Whether `word` is `server:uri` with a server of this session."""
        server, _, uri = word.partition(":")
        return bool(uri) and self.mcp.pool is not None and _has(self.mcp.pool, server)

    async def text(self, word: str) -> str:
        """What a document says.

        Raises:
            AgentError: the server cannot be started, or does not have it.
        """
        from agent.mcp.contents import as_document, kept_in

        server, _, uri = word.partition(":")
        pool = self.mcp.pool
        if pool is None:
            raise UsageError(f"there is no MCP server {server}")
        result = await pool.read_resource(server, uri)
        return await asyncio.to_thread(as_document, result, kept_in(self.folder))


def command_name(server: str, prompt: "RemotePrompt") -> str:
    """How a prompt is typed behind the slash; empty where its name is no honest one."""
    from agent.mcp.text import plain_name

    if not prompt.name or not prompt.name.isprintable() or len(prompt.name) > 100:
        return ""
    return f"{server}:{plain_name(prompt.name)}"


def takes(arguments: Sequence["PromptArgument"]) -> str:
    """The arguments of a prompt for people, those that may be left out in brackets."""
    named = [
        one_line(item.name, 40) if item.required else f"[{one_line(item.name, 40)}]" for item in arguments
    ]
    return " ".join(named)


def filled(command: str, arguments: Sequence["PromptArgument"], rest: str) -> dict[str, str]:
    """What was typed behind a command, by the names of its arguments: in their order, or as `name=value`.

    The last argument takes all that is left.

    Raises:
        UsageError: one that is needed is missing, or there are too many.
    """
    known = {item.name for item in arguments}
    try:
        words = shlex.split(rest)
    except ValueError:
        words = rest.split()
    named: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in known:
            named[name] = value
        else:
            plain.append(word)
    free = [item.name for item in arguments if item.name not in named]
    if plain and not free:
        raise UsageError(f"/{command} takes no more than {takes(arguments) or 'its name'}")
    while plain and free:
        name = free.pop(0)
        named[name] = plain.pop(0) if free else " ".join(plain)
        plain = plain if free else []
    missing = [item.name for item in arguments if item.required and not named.get(item.name)]
    if missing:
        raise UsageError(
            f"/{command} needs {', '.join(one_line(name, 40) for name in missing)}",
            f"/{command} {takes(arguments)}",
        )
    return named


async def _prompt_text(pool: "Pool", server: str, name: str, rest: str) -> str:
    prompt = _prompt_named(pool, server, name)
    if prompt is None:
        failures = (await pool.list_tools([server])).failures
        if server in failures:
            raise failures[server]
        prompt = _prompt_named(pool, server, name)
    if prompt is None:
        offer = pool.offer(server)
        names = [command_name(server, one) for one in offer.prompts] if offer else []
        listed = ", ".join(f"/{one}" for one in names if one)
        raise UsageError(
            f"the MCP server {server} has no prompt {one_line(name, 60)!r}", f"there are: {listed or 'none'}"
        )
    given = filled(f"{server}:{name}", prompt.arguments, rest)
    from agent.mcp.contents import as_prompt

    text = as_prompt(await pool.get_prompt(server, prompt.name, given))
    if not text:
        raise AgentError(f"the MCP server {server} wrote nothing for /{server}:{name}")
    return text


def _prompt_named(pool: "Pool", server: str, name: str) -> "RemotePrompt | None":
    offer = pool.offer(server)
    wanted = f"{server}:{name}"
    prompts = offer.prompts if offer is not None else []
    return next((one for one in prompts if command_name(server, one) == wanted), None)


def _offers(pool: "Pool | None") -> "list[tuple[str, Offer]]":
    if pool is None:
        return []
    found = [(spec.name, pool.offer(spec.name)) for spec in pool.specs if not pool.is_off(spec.name)]
    return [(name, offer) for name, offer in found if offer is not None]


def _has(pool: "Pool", server: str) -> bool:
    return any(spec.name == server for spec in pool.specs)
