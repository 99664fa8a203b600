"""Slash commands of an editor: services of the session that answer with text, and the person's own."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from acp.schema import AvailableCommand, AvailableCommandInput, UnstructuredCommandInput

from agent.core.errors import UsageError
from agent.core.handle import SessionHandle
from agent.core.outside_text import fenced, one_line, tidy
from agent.core.undo_words import brought_back, taken_back

_COMMAND = re.compile(r"/([A-Za-z][\w-]*(?::[\w-]+)*)(?:\s+(.*))?", re.S)
_LONGEST_CELL = 120
Run = Callable[[SessionHandle, str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Command:
    """`run` gives the text to show, in Markdown. `takes` names the argument, empty without one."""

    name: str
    summary: str
    run: Run
    takes: str = ""


async def available(handle: SessionHandle) -> list[AvailableCommand]:
    """Our commands, the custom ones and the skills of this folder. Reads files."""
    rows = [(one.name, one.summary, one.takes) for one in COMMANDS]
    known = {name for name, _, _ in rows} | {_INIT}
    rows.append((_INIT, "have AGENTS.md written for this repository", ""))
    custom = await handle.command("commands", {})
    rows += [(one.name, one.summary, one.takes or "arguments") for one in custom if one.name not in known]
    return [
        AvailableCommand(
            name=name,
            description=one_line(summary, 200) or name,
            input=AvailableCommandInput(UnstructuredCommandInput(hint=takes)) if takes else None,
        )
        for name, summary, takes in rows
    ]


def parse(text: str) -> tuple[str, str] | None:
    """Name and argument of a text that is a command; None for any other, such as `/etc/hosts is wrong`."""
    match = _COMMAND.fullmatch(text.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def find(name: str) -> Command | None:
    return next((command for command in COMMANDS if command.name == name), None)


async def prompt_for(handle: SessionHandle, name: str, argument: str) -> str:
    """The text that a custom command or a skill sends to the model.

    Raises:
        UsageError: there is no such command.
    """
    if name == _INIT:
        return await handle.command("init", {})
    try:
        return await handle.command("expand", {"name": name, "arguments": argument})
    except UsageError as error:
        raise UsageError(error.message, "type / to see the commands") from None


async def _compact(handle: SessionHandle, argument: str) -> str:
    await handle.command("compact", {"instruction": argument})
    return "The conversation is summed up."


async def _context(handle: SessionHandle, _: str) -> str:
    report = await handle.command("context", {})
    used = report.used or sum(part.tokens for part in report.parts)
    window = f" of {report.window:,}" if report.window else ""
    note = "" if report.is_exact else "\n\nEstimated by length: no server was there to count."
    return f"{used:,}{window} tokens\n\n{as_markdown(report.parts)}{note}"


async def _diff(handle: SessionHandle, _: str) -> str:
    text = str(await handle.command("diff", {}))
    return fenced(tidy(text)).replace("```", "```diff", 1) if text.strip() else "Nothing was changed."


async def _undo(handle: SessionHandle, _: str) -> str:
    return taken_back(await handle.command("undo", {}))


async def _redo(handle: SessionHandle, _: str) -> str:
    return brought_back(await handle.command("redo", {}))


async def _model(handle: SessionHandle, argument: str) -> str:
    if not argument:
        names = await handle.command("profile", {})
        return f"Now {handle.facts.profile}. There are: {', '.join(names)}. `/model NAME` changes it."
    switch = await handle.command("profile", {"name": argument, "apply": True})
    return f"Now {switch.profile}; it reads {switch.tokens:,} tokens of conversation anew."


async def _server(handle: SessionHandle, argument: str) -> str:
    panel = await handle.command("server", {"action": argument} if argument else {})
    rows = {name: value for name, value in asdict(panel).items() if name not in ("log", "findings") and value}
    return as_markdown([{"": name.replace("_", " "), "value": value} for name, value in rows.items()])


async def _skills(handle: SessionHandle, _: str) -> str:
    return as_markdown(await handle.command("skills", {})) or "There is no skill here."


async def _mcp(handle: SessionHandle, argument: str) -> str:
    if not argument:
        report = await handle.command("mcp", {})
        return as_markdown(report.servers) or "No MCP server is configured."
    name, _, action = argument.partition(" ")
    wanted = {"name": name, "action": action.strip()} if action.strip() else {"name": name}
    detail = await handle.command("mcp", wanted)
    tools = as_markdown([{"tool": tool, "description": said} for tool, said in detail.tools])
    return "\n\n".join(part for part in (as_markdown([detail.row]), tools) if part)


def as_markdown(rows: Sequence[Any]) -> str:
    """Rows of a service as a table, empty without any."""
    plain = [_mapping(row) for row in rows]
    if not plain:
        return ""
    columns = list(plain[0])
    lines = [columns, ["---"] * len(columns)]
    lines += [[_cell(row.get(column)) for column in columns] for row in plain]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _mapping(row: Any) -> Mapping[str, Any]:
    if is_dataclass(row) and not isinstance(row, type):
        return asdict(row)
    return row if isinstance(row, Mapping) else {"": row}


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)
    return one_line(text, _LONGEST_CELL).replace("|", "\\|")


_INIT = "init"
COMMANDS: tuple[Command, ...] = (
    Command("compact", "make the conversation shorter", _compact, "what to keep above all"),
    Command("context", "what fills the context, in tokens", _context),
    Command("diff", "show what this session changed", _diff),
    Command("undo", "take back what the last turn changed in files", _undo),
    Command("redo", "bring back what was undone", _redo),
    Command("model", "go on with another profile", _model, "profile"),
    Command("server", "state of the model server; start or stop it", _server, "start or stop"),
    Command("skills", "skills that the model can use", _skills),
    Command("mcp", "MCP servers of this session; one by its name", _mcp, "server, and reconnect or disable"),
)
