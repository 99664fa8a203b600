"""What takes more than a call: running a command, a shell line, searching, the external editor."""

import os
from typing import TYPE_CHECKING

from agent.ui.commands.catalogue import ALL, choice, run_line
from agent.ui.editor import edit_text, editor_command
from agent.ui.text import one_line
from agent.ui.widgets.menu import Choice

if TYPE_CHECKING:
    from agent.ui.app import AgentApp
    from agent.ui.desk import Desk


async def run_command(desk: "Desk", line: str) -> None:
    """Runs a line such as `/resume 3f2`. Raises AgentError."""
    await run_line(desk.host, line)


async def run_shell(desk: "Desk", text: str) -> None:
    """Runs `!command` in the session, or `!!command` outside of the conversation. Raises AgentError."""
    command = text.lstrip("!").strip()
    await desk.live.service("shell", command=command, context=not text.startswith("!!"))


async def choose_command(app: "AgentApp", desk: "Desk") -> None:
    chosen = await desk.host.pick("Commands", [choice(command) for command in ALL])
    if chosen is None:
        return
    if chosen.value.endswith(" "):
        app.prompt.show_text(chosen.value)
    else:
        await run_command(desk, chosen.value)


async def search_history(app: "AgentApp", desk: "Desk") -> None:
    entries = [Choice(text, one_line(text)) for text in app.past.newest_first()]
    chosen = await desk.host.pick("What was sent in this project", entries)
    if chosen is not None:
        app.prompt.show_text(chosen.value)


async def edit_outside(app: "AgentApp", _desk: "Desk") -> None:
    """Raises UsageError: there is no editor, or it failed."""
    command = editor_command(os.environ)
    text = app.prompt.pastes.expand(app.prompt.text)
    with app.suspend(), app.batch_update():
        edited = await edit_text(text, command)
    app.prompt.show_text(edited)
    app.refresh(layout=True)
