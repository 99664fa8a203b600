"""Tools of MCP servers as tools of ours: their names, what the model sees of them, and their results."""

import asyncio
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, RootModel, model_validator

from agent.core.errors import AgentError
from agent.core.outside_text import tidy
from agent.core.tool import Access, ToolContext, ToolResult
from agent.mcp.config import ServerSpec
from agent.mcp.contents import LARGEST_CHARACTERS, Keep, as_text, kept_in, nothing_kept, noting_images
from agent.mcp.listing import RemoteTool
from agent.mcp.pool import Pool
from agent.mcp.schema import DESCRIPTION_CHARACTERS, UnfitSchemaError, problems_of, projected
from agent.mcp.text import one_line, plain_name

BETWEEN = "__"
"""Stands between server and tool. No built-in tool has it in its name."""

LONGEST_NAME = 64

MOST_SHOWN = 4
"""So many images of one result are shown; each costs hundreds of tokens in every request."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that can be offered. `name` is what the model calls it, `schema` what it is shown."""

    name: str
    server: str
    remote: RemoteTool
    schema: Mapping[str, Any]
    description: str

    @property
    def access(self) -> Access:
        """`read` only where the server says so; the gate asks about either."""
        return "read" if self.remote.read_only else "execute"


def offered_tools(spec: ServerSpec, remotes: Iterable[RemoteTool]) -> tuple[list[OfferedTool], list[str]]:
    """The usable tools of a server in its own order, and a line for each that is left out."""
    found: dict[str, OfferedTool] = {}
    problems: list[str] = []
    for remote in remotes:
        shown = one_line(repr(remote.name), 80)
        if not spec.offers(remote.name):
            continue
        name, problem = _offered_name(spec.name, remote.name), ""
        if not name:
            problem = "its name cannot be used"
        elif name in found:
            problem = "another tool has the same name"
        try:
            schema = {} if problem else projected(remote.schema)
        except UnfitSchemaError as error:
            schema, problem = {}, str(error)
        if problem:
            problems.append(f"the tool {shown} of the MCP server {spec.name} is left out: {problem}")
            continue
        description = one_line(remote.description, DESCRIPTION_CHARACTERS)
        found[name] = OfferedTool(name, spec.name, remote, schema, description)
    return list(found.values()), problems


def _offered_name(server: str, tool: str) -> str:
    """`server__tool` in letters, digits, - and _; an empty text where the tool's name is no honest one."""
    if not tool or not tool.isprintable() or len(tool) > 256:
        return ""
    name = f"{server}{BETWEEN}{plain_name(tool)}"
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{name[: LONGEST_NAME - 7]}_{digest}"


class McpTool:
    """One tool of a server, offered with its schema or called through `mcp_call`."""

    def __init__(self, offered: OfferedTool, pool: Pool, called_as: str = "") -> None:
        self.name = offered.name
        self.called_as = called_as
        self.description = offered.description
        self.access: Access = offered.access
        self.params: type[BaseModel] = arguments_of(offered)
        self._offered = offered
        self._pool = pool

    def preview(self, params: Any, context: ToolContext) -> ToolResult | None:
        """Why the call cannot succeed, so that nobody is asked about it; None where it may."""
        server = self._offered.server
        return ToolResult(switched_off(server), is_error=True) if self._pool.is_off(server) else None

    async def run(self, params: Any, context: ToolContext) -> ToolResult:
        offered = self._offered
        arguments = params.root if isinstance(params, RootModel) else params
        try:
            result = await self._pool.call(offered.server, offered.remote.name, arguments, context.emit)
        except AgentError as error:
            return ToolResult(error.message, is_error=True)
        images: list[Path] = []
        keep = noting_images(kept_in(context.spill_folder), images)
        told = await asyncio.to_thread(as_result, offered.server, result, keep)
        return await _with_pictures(told, images, context)


async def _with_pictures(told: ToolResult, images: Sequence[Path], context: ToolContext) -> ToolResult:
    """The result with as many of its images as are shown to a model that can see."""
    found = [await context.picture(path) for path in images[:MOST_SHOWN]]
    pictures = tuple(picture for picture in found if picture is not None)
    if not pictures:
        return told
    note = f"[{len(pictures)} of {len(images)} images in the next message]"
    return replace(told, model_text=f"{told.model_text}\n{note}", pictures=pictures)


def switched_off(server: str) -> str:
    """What the model is told of a server that a person switched off."""
    return f"The user has switched off the MCP server {server}. Go on without it."


def arguments_of(offered: OfferedTool) -> type[BaseModel]:
    """A model class that shows the projected schema and checks against the original one."""
    shown, original = offered.schema, offered.remote.schema

    class Arguments(RootModel[dict[str, Any]]):
        @model_validator(mode="after")
        def fit_the_schema(self) -> "Arguments":
            problems = problems_of(self.root, original)
            if problems:
                raise ValueError("; ".join(problems))
            return self

        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return deepcopy(dict(shown))

    return Arguments


def as_result(server: str, result: Any, keep: Keep = nothing_kept) -> ToolResult:
    """A server's `CallToolResult` for the model: text as it is, everything else named, marked as data."""
    text = as_text(result.content, keep)
    structured = result.structured_content
    if structured is not None and not any(block.type == "text" for block in result.content):
        text = tidy(f"{text}\n{_as_json(structured)}"[:LARGEST_CHARACTERS]).strip()
    if not text:
        text = "It failed and said nothing about it." if result.is_error else "(no output)"
    return ToolResult(f"[data from the MCP server {server}]\n{text}", is_error=bool(result.is_error))


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def schema_characters(tools: Sequence[OfferedTool]) -> int:
    """Characters that the tools take in a request when each is offered with its schema."""
    records = [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.schema},
        }
        for t in tools
    ]
    return sum(len(json.dumps(record, ensure_ascii=False)) for record in records)
