"""Commands about what the session runs on: model, server, bench, permissions, MCP servers, skills."""

from collections.abc import Sequence
from typing import Any

from agent.core.errors import UsageError
from agent.core.handle import MODES
from agent.ui.commands.command import Command, Host
from agent.ui.commands.reports import server_text, switch_cost
from agent.ui.options import Opening
from agent.ui.result_text import as_text
from agent.ui.text import one_line, size
from agent.ui.widgets.menu import Choice


async def model(host: Host, argument: str) -> None:
    if host.facts is None:
        await _begin_with(host, argument)
        return
    name = argument or await _picked_profile(host, "profile")
    if not name:
        return
    cost = switch_cost(await host.service("profile", name=name))
    answers = [Choice("yes", f"Go over to {one_line(name, 60)}", cost), Choice("no", "Stay here")]
    chosen = await host.pick("The new model reads the whole conversation once", answers)
    if chosen is None or chosen.value != "yes":
        return
    if await host.prepare(name):
        await host.service("profile", name=name, apply=True)
    else:
        present = host.facts.profile if host.facts else "the present profile"
        host.tell(f"{one_line(name, 60)} still lacks something; {present} goes on answering.")


async def _begin_with(host: Host, argument: str) -> None:
    """There is no session yet, such as while the model of the usual profile is not there."""
    name = argument or await _picked_profile(host, "profiles")
    if name:
        await host.service("profiles", name=name)
        await host.reopen(Opening(profile=name))


async def _picked_profile(host: Host, service: str) -> str:
    present = host.facts.profile if host.facts else ""
    choices = profile_choices(await host.service(service), present)
    chosen = await host.pick("Go on with another profile", choices)
    return chosen.value if chosen is not None else ""


def profile_choices(rows: Sequence[Any], present: str) -> list[Choice]:
    """Choices of rows with `name`, `description`, `bytes` of the model files and `presence` of these."""
    wide = max((len(row.presence) for row in rows), default=0)
    choices = []
    for row in rows:
        mark = "●" if row.name == present else " "
        note = f"{row.presence:<{wide}}  {size(row.bytes) if row.bytes else '':>7}"
        more = f"{'now: ' if row.name == present else ''}{one_line(row.description, 120)}"
        choices.append(Choice(row.name, f"{mark} {one_line(row.name, 60)}", note, more))
    return choices


async def server(host: Host, argument: str) -> None:
    action = argument or "state"
    if action not in ("state", "log", "start", "stop"):
        raise UsageError(f"/server knows no '{one_line(action, 20)}'", "state, log, start or stop")
    if action in ("start", "stop"):
        await host.service("server", action=action)
        host.tell("The server was started." if action == "start" else "The server was stopped.")
        return
    panel = await host.service("server")
    if action == "log":
        log = "\n".join(getattr(panel, "log", ()))
        host.show_page("Server log", log or "The server has written nothing.")
    else:
        host.show_page("Server", server_text(panel))


async def bench(host: Host, argument: str) -> None:
    """Its card in the conversation shows the figures as they come, and the table at the end."""
    await host.service("bench", options=argument)


async def permissions(host: Host, argument: str) -> None:
    if argument:
        _change_mode(host, argument)
        return
    rules = await _session_rules(host)
    if rules:
        choices = [Choice("", "Show all rules", _mode(host))]
        choices += [
            Choice(rule, one_line(rule, 60), "allowed in this session; Enter removes") for rule in rules
        ]
        chosen = await host.pick("Permissions", choices)
        if chosen is None:
            return
        if chosen.value:
            await host.service("forget_rule", rule=chosen.value)
            host.tell(f"{one_line(chosen.value)} is asked about again.")
            return
    settled = as_text(await host.service("permissions"))
    own = "".join(f"\nallow {rule}  (this session)" for rule in rules)
    host.show_page("Permissions", f"{_mode(host)}\n\n{settled}{own}")


def _mode(host: Host) -> str:
    return f"mode: {host.facts.mode if host.facts else ''}"


def _change_mode(host: Host, argument: str) -> None:
    for mode in MODES:
        if mode == argument.replace(" ", "-"):
            host.set_mode(mode)
            return
    raise UsageError(f"there is no mode '{one_line(argument, 20)}'", ", ".join(MODES))


async def _session_rules(host: Host) -> list[str]:
    try:
        return [str(rule) for rule in await host.service("session_rules")]
    except UsageError:
        return []


async def skills(host: Host, argument: str) -> None:
    await _page_of(host, "skills", "Skills", argument, "There is no skill here.")


async def _page_of(host: Host, service: str, title: str, argument: str, otherwise: str) -> None:
    """Shows what a service answers, or says in a sentence that there is nothing."""
    try:
        result = await host.service(service, arguments=argument)
    except UsageError:
        host.tell(otherwise)
        return
    if result:
        host.show_page(title, as_text(result))
    else:
        host.tell(otherwise)


COMMANDS = (
    Command(
        name="model",
        summary="go on with another profile",
        run=model,
        takes="[profile]",
        aliases=("profile",),
        help="Says beforehand what it costs: the new model has to read the whole conversation. "
        "What is not there yet is offered.",
    ),
    Command(
        name="server",
        summary="state, log, start or stop of the server",
        run=server,
        takes="[action]",
        help="Without an action: state, memory, speculation, what was noticed, the end of the log.",
        aliases=("status",),
    ),
    Command(
        name="bench",
        summary="measure the server of this session",
        run=bench,
        takes="[options]",
        help="--suite NAME, --runs N, --max-tokens N, --limit N. A message waits until it is done; "
        "Esc ends it. `agent bench` compares profiles.",
    ),
    Command(
        name="permissions",
        summary="what needs a question, or another mode",
        help="Modes: plan, ask, accept-edits, auto. Shift+Tab goes through them.",
        run=permissions,
        takes="[mode]",
        aliases=("mode",),
    ),
    Command(
        name="skills",
        summary="skills that the model can use",
        run=skills,
        help="/NAME uses one by hand; `agent skills` adds and checks them.",
    ),
)
