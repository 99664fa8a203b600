"""What a server says that it offers: tools, prompts and resources. Nothing in it is to be trusted."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.mcp.text import one_line

MOST_LISTED = 1000
MOST_PAGES = 100
MOST_CHARACTERS = 16_000_000
"""Of all pages of one list together; they are in memory, and what is used of them is remembered on disk."""

_MOST_ARGUMENTS = 20
_LONGEST_DESCRIPTION = 4000
_EXTRA_SECONDS = 10.0
"""Prompts and resources are for the person; tools do not wait longer than that for them."""


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server describes it."""

    name: str
    description: str
    schema: Any
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """What a prompt can be given."""

    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class RemotePrompt:
    """A text that a server writes for a person who asks for it."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteResource:
    """A document that a server can show. `uri` may be a template with `{parts}` to fill in."""

    uri: str
    name: str = ""
    description: str = ""
    is_template: bool = False


@dataclass(slots=True)
class Offer:
    """All that one server offers; `problems` are lines for people."""

    tools: list[RemoteTool] = field(default_factory=list)
    prompts: list[RemotePrompt] = field(default_factory=list)
    resources: list[RemoteResource] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


async def list_offer(client: Any, seconds: float) -> Offer:
    """Asks a connected `mcp.Client` for everything, up to numbers that no honest server has.

    `seconds` is the time that there is for all of it, which the caller holds it to. A failure about tools is
    raised as the library has it; one about the rest becomes a problem.
    """
    import anyio

    offer = Offer()
    offers = client.server_capabilities
    if offers.tools is None:
        offer.problems.append("it has no tools")
    else:
        tools = await _pages(client.list_tools, lambda page: page.tools, "tools", offer)
        offer.tools = [_tool(item) for item in tools if not _only_as_task(item)]
        offer.problems += [
            f"the tool {one_line(repr(item.name), 80)} is left out: it can only be run as a task"
            for item in tools
            if _only_as_task(item)
        ]
    with anyio.move_on_after(min(_EXTRA_SECONDS, seconds / 2)) as scope:
        if offers.prompts is not None:
            prompts = await _extra(client.list_prompts, lambda page: page.prompts, "prompts", offer)
            offer.prompts = [_prompt(item) for item in prompts]
        if offers.resources is not None:
            found = await _extra(client.list_resources, lambda page: page.resources, "resources", offer)
            offer.resources = [_resource(item) for item in found]
            templates = await _extra(
                client.list_resource_templates, lambda page: page.resource_templates, "templates", offer
            )
            offer.resources += [_template(item) for item in templates]
    if scope.cancelled_caught:
        offer.problems.append("it does not say in time which prompts and resources it has")
    return offer


async def _extra(
    ask: Callable[..., Awaitable[Any]], part: Callable[[Any], Sequence[Any]], what: str, offer: Offer
) -> list[Any]:
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    try:
        return await _pages(ask, part, what, offer)
    except MCPError:
        return []  # it said that it has some, and has not: that takes nothing from its tools
    except ValidationError:
        offer.problems.append(f"its list of {what} cannot be understood")
        return []


async def _pages(
    ask: Callable[..., Awaitable[Any]], part: Callable[[Any], Sequence[Any]], what: str, offer: Offer
) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    seen: set[str] = set()
    characters = 0
    for _ in range(MOST_PAGES):
        page = await ask(cursor=cursor)
        found += part(page)
        cursor = page.next_cursor
        if not cursor and len(found) <= MOST_LISTED:
            return found
        characters += len(repr(page))
        if not cursor or len(found) >= MOST_LISTED or characters > MOST_CHARACTERS or cursor in seen:
            break
        seen.add(cursor)
    del found[MOST_LISTED:]
    offer.problems.append(f"its list of {what} has no end; the first {len(found)} are used")
    return found


def _tool(tool: Any) -> RemoteTool:
    hints = tool.annotations
    read_only = bool(hints is not None and hints.read_only_hint)
    description = (tool.description or "")[:_LONGEST_DESCRIPTION]
    return RemoteTool(tool.name, description, tool.input_schema, read_only)


def _only_as_task(tool: Any) -> bool:
    """Whether the server refuses a plain call; tasks are an extension of MCP that is not spoken here."""
    return tool.execution is not None and tool.execution.task_support == "required"


def _prompt(prompt: Any) -> RemotePrompt:
    arguments = tuple(
        PromptArgument(item.name, one_line(item.description or "", 120), bool(item.required))
        for item in (prompt.arguments or ())[:_MOST_ARGUMENTS]
    )
    return RemotePrompt(prompt.name, one_line(prompt.description or prompt.title or "", 200), arguments)


def _resource(resource: Any) -> RemoteResource:
    about = one_line(resource.description or resource.title or "", 120)
    return RemoteResource(str(resource.uri), one_line(resource.name, 80), about)


def _template(template: Any) -> RemoteResource:
    about = one_line(template.description or template.title or "", 120)
    return RemoteResource(template.uri_template, one_line(template.name, 80), about, is_template=True)
