"""`/mcp`: the servers of the session with their state, tools and cost, and what can be done about each."""

from collections.abc import Sequence
from typing import Any

from textual.content import Content

from agent.core.errors import UsageError
from agent.ui.commands.command import Command, Host
from agent.ui.conversation.text import visible
from agent.ui.text import duration, one_line
from agent.ui.widgets.menu import Choice

_NONE = "No MCP server is configured. `agent mcp add NAME -- COMMAND` adds one; /new then uses it."
_ACTIONS = ("tools", "log", "reconnect", "enable", "disable")
_DONE = {
    "reconnect": "The MCP server {name} was started anew: {state}, {tools}.",
    "enable": "The MCP server {name} is switched on; it starts when the model needs it.",
    "disable": "The MCP server {name} was ended and stays off until /mcp {name} enable.",
}


async def mcp(host: Host, argument: str) -> None:
    name, _, action = argument.partition(" ")
    action = action.strip()
    if action and action not in _ACTIONS:
        raise UsageError(f"/mcp knows no '{one_line(action, 30)}'", ", ".join(_ACTIONS))
    if not name:
        name = await _chosen_server(host)
    if not name:
        return
    if not action:
        detail = await host.service("mcp", name=name)
        chosen = await host.pick(f"MCP server {one_line(name, 40)}", _ways(detail.row))
        action = chosen.value if chosen is not None else ""
    if action in ("tools", "log"):
        _show(host, await host.service("mcp", name=name), action)
    elif action:
        row = (await host.service("mcp", name=name, action=action)).row
        told = _DONE[action].format(name=one_line(name, 60), state=row.state, tools=_tools(row))
        host.tell(told)


async def _chosen_server(host: Host) -> str:
    """The name of the server that the person chose, empty when there is none."""
    try:
        report = await host.service("mcp")
    except UsageError:
        report = None
    rows: Sequence[Any] = getattr(report, "servers", ())
    if report is None or not rows:
        host.tell(_NONE)
        return ""
    choices = [Choice(row.name, one_line(row.name, 40), row_text(row)) for row in rows]
    chosen = await host.pick(title_of(report), choices)
    return chosen.value if chosen is not None else ""


def title_of(report: Any) -> str:
    """What all servers together cost."""
    if not report.prompt_tokens:
        return "MCP servers"
    seconds = f", {_seconds(report.prompt_seconds)}" if report.prompt_seconds else ""
    how = "offered as they are" if report.is_direct else "found on demand"
    return f"MCP servers: about {report.prompt_tokens:,} tokens of each prompt{seconds}, tools {how}"


def row_text(row: Any) -> str:
    """State, tools, cost, and what went wrong, in one line."""
    parts = [row.state]
    if row.tools is not None:
        parts.append(_tools(row))
    if row.tokens:
        parts.append(f"{row.tokens:,} tokens" + (f" ({_seconds(row.seconds)})" if row.seconds else ""))
    if row.why:
        parts.append(one_line(row.why, 100))
    return " · ".join(parts)


def _seconds(seconds: float) -> str:
    return duration(seconds) if seconds >= 10 else f"{seconds:.1f} s"


def _tools(row: Any) -> str:
    if row.tools is None:
        return "tools not known yet"
    return f"{row.tools} tool{'' if row.tools == 1 else 's'}"


def _ways(row: Any) -> list[Choice]:
    switch = (
        Choice("enable", "Switch on", "it starts when the model needs it")
        if row.state == "off"
        else Choice("disable", "Switch off", "for this session; the prompt stays as it is")
    )
    return [
        Choice("tools", "Show its tools", row_text(row)),
        Choice("log", "Show its log"),
        Choice("reconnect", "Connect anew", "ends it and starts it again"),
        switch,
    ]


def _show(host: Host, detail: Any, what: str) -> None:
    title = f"MCP server {one_line(detail.row.name, 40)}"
    if what == "log":
        end = "\n".join(detail.log) or "It has written nothing."
        host.show_page(title, f"{detail.log_file}\n\n{end}")
        return
    lines = [
        Content(visible(row_text(detail.row))),
        Content.styled(visible(" · ".join(filter(None, [detail.about, detail.what]))), "$quiet"),
    ]
    for name, description in detail.tools:
        lines += [Content(""), Content.styled(visible(name), "bold"), Content(visible(description))]
    if not detail.tools:
        lines += [Content(""), Content.styled("No tools are known; connecting shows them.", "$quiet")]
    host.show_page(title, Content("\n").join(lines))


COMMANDS = (
    Command(
        name="mcp",
        summary="MCP servers: state, tools, cost, connect anew, switch on or off",
        run=mcp,
        takes="[server] [action]",
        help="Actions: tools, log, reconnect, enable, disable. Switching off holds for this session.",
    ),
)
