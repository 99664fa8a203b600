"""Commands about what the session runs on: model, server, bench, permissions, MCP servers, skills."""

from collections.abc import Mapping
from typing import Any

from agent.core.errors import UsageError
from agent.core.handle import MODES
from agent.ui.commands.command import Command, Host
from agent.ui.result_text import as_text
from agent.ui.text import one_line
from agent.ui.widgets.menu import Choice


async def model(host: Host, argument: str) -> None:
    name = argument
    if not name:
        choices = profile_choices(await host.service("profiles"))
        chosen = await host.pick(
            "Go on with another profile (its model reads the conversation anew)", choices
        )
        if chosen is None:
            return
        name = chosen.value
    host.tell(as_text(await host.service("switch_profile", profile=name)) or f"The next turn uses {name}.")


def profile_choices(rows: Any) -> list[Choice]:
    """Choices of what the service `profiles` answers: names, or rows with a name and a description."""
    choices = []
    for row in rows or ():
        if isinstance(row, str):
            choices.append(Choice(row, row))
        elif isinstance(row, Mapping):
            name = str(row.get("name", ""))
            note = str(row.get("cost") or row.get("summary") or row.get("description") or "")
            choices.append(Choice(name, one_line(name, 40), one_line(note, 100)))
    return choices


async def server(host: Host, argument: str) -> None:
    action = argument or "state"
    if action not in ("state", "log", "start", "stop"):
        raise UsageError(f"/server knows no '{one_line(action, 20)}'", "state, log, start or stop")
    text = as_text(await host.service("server", action=action))
    if action in ("state", "log"):
        host.show_page(f"Server: {action}", text)
    else:
        host.tell(text or f"Server: {action}")


async def bench(host: Host, argument: str) -> None:
    host.tell("Measuring; this takes a minute or more.")
    host.show_page("Bench", as_text(await host.service("bench", arguments=argument)))


async def permissions(host: Host, argument: str) -> None:
    if not argument:
        host.show_page("Permissions", as_text(await host.service("permissions")))
        return
    for mode in MODES:
        if mode == argument.replace(" ", "-"):
            host.set_mode(mode)
            return
    raise UsageError(f"there is no mode '{one_line(argument, 20)}'", ", ".join(MODES))


async def mcp(host: Host, argument: str) -> None:
    host.show_page("MCP servers", as_text(await host.service("mcp", arguments=argument)))


async def skills(host: Host, argument: str) -> None:
    host.show_page("Skills", as_text(await host.service("skills", arguments=argument)))


COMMANDS = (
    Command(
        name="model",
        summary="go on with another profile",
        run=model,
        takes="[profile]",
        aliases=("profile",),
        help="The new model reads the whole conversation once; the list says what that costs where it is known.",
    ),
    Command(
        name="server",
        summary="state, log, start or stop of the server",
        run=server,
        takes="[state|log|start|stop]",
    ),
    Command(name="bench", summary="measure this profile on this machine", run=bench, takes="[arguments]"),
    Command(
        name="permissions",
        summary="what needs a question, or another mode",
        run=permissions,
        takes="[plan|ask|accept-edits|auto]",
        aliases=("mode",),
    ),
    Command(name="mcp", summary="connected MCP servers and their tools", run=mcp),
    Command(name="skills", summary="skills that the model can use", run=skills),
)
