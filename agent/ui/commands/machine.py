"""Commands about what the session runs on: model, server, bench, permissions, MCP servers, skills."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agent.core.errors import UsageError
from agent.core.handle import MODES
from agent.ui.commands.command import Command, Host
from agent.ui.result_text import as_text
from agent.ui.text import count, duration, one_line
from agent.ui.widgets.menu import Choice


async def model(host: Host, argument: str) -> None:
    name = argument
    if not name:
        known = [str(one) for one in await host.service("profile")]
        present = host.facts.profile if host.facts else ""
        choices = [Choice(one, one_line(one, 60), "now" if one == present else "") for one in known]
        chosen = await host.pick("Go on with another profile", choices)
        if chosen is None:
            return
        name = chosen.value
    cost = switch_cost(await host.service("profile", name=name))
    answers = [Choice("yes", f"Go over to {one_line(name, 60)}", cost), Choice("no", "Stay here")]
    chosen = await host.pick("The new model reads the whole conversation once", answers)
    if chosen is not None and chosen.value == "yes":
        await host.service("profile", name=name, apply=True)


def switch_cost(switch: Any) -> str:
    """What the service `profile` says of the cost, in one line."""
    tokens, seconds = getattr(switch, "tokens", 0), getattr(switch, "seconds", None)
    parts = [f"{count(tokens)} tokens to read" if tokens else "nothing to read yet"]
    if seconds:
        parts.append(f"about {duration(seconds)} at the speed measured here")
    if not getattr(switch, "is_running", True):
        parts.append("its server has to start")
    return ", ".join(parts)


async def server(host: Host, argument: str) -> None:
    action = argument or "state"
    if action not in ("state", "log", "start", "stop"):
        raise UsageError(f"/server knows no '{one_line(action, 20)}'", "state, log, start or stop")
    if action in ("start", "stop"):
        await host.service("server", action=action)
        host.tell("The server was started." if action == "start" else "The server was stopped.")
        return
    panel = await host.service("server")
    log = "\n".join(getattr(panel, "log", ()))
    if action == "log":
        host.show_page("Server log", log or "The server has written nothing.")
        return
    known = dict(panel) if isinstance(panel, Mapping) else asdict(panel)
    known.pop("log", None)
    host.show_page(
        "Server", as_text({name: value for name, value in known.items() if value not in (None, "")})
    )


async def bench(host: Host, argument: str) -> None:
    await _page_of(host, "bench", "Bench", argument, "`agent bench` measures in another terminal")


async def permissions(host: Host, argument: str) -> None:
    if not argument:
        rules = as_text(await host.service("permissions"))
        mode = host.facts.mode if host.facts else ""
        host.show_page("Permissions", f"mode: {mode}\n\n{rules}")
        return
    for mode in MODES:
        if mode == argument.replace(" ", "-"):
            host.set_mode(mode)
            return
    raise UsageError(f"there is no mode '{one_line(argument, 20)}'", ", ".join(MODES))


async def mcp(host: Host, argument: str) -> None:
    await _page_of(host, "mcp", "MCP servers", argument, "this version connects to none")


async def skills(host: Host, argument: str) -> None:
    await _page_of(host, "skills", "Skills", argument, "this version uses none")


async def _page_of(host: Host, service: str, title: str, argument: str, otherwise: str) -> None:
    """Shows what a service answers, or says in a sentence what there is instead."""
    try:
        result = await host.service(service, arguments=argument)
    except UsageError:
        host.tell(f"/{service} is not there in this session: {otherwise}.")
        return
    host.show_page(title, as_text(result) or "Nothing to show.")


COMMANDS = (
    Command(
        name="model",
        summary="go on with another profile",
        run=model,
        takes="[profile]",
        aliases=("profile",),
        help="Says beforehand what it costs: the new model has to read the whole conversation.",
    ),
    Command(
        name="server",
        summary="state, log, start or stop of the server",
        run=server,
        takes="[action]",
    ),
    Command(name="bench", summary="measure this profile on this machine", run=bench, takes="[options]"),
    Command(
        name="permissions",
        summary="what needs a question, or another mode",
        help="Modes: plan, ask, accept-edits, auto. Shift+Tab goes through them.",
        run=permissions,
        takes="[mode]",
        aliases=("mode",),
    ),
    Command(name="mcp", summary="connected MCP servers and their tools", run=mcp),
    Command(name="skills", summary="skills that the model can use", run=skills),
)
