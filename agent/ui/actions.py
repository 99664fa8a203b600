"""What takes more than a call: running a command, a shell line, searching, the external editor."""

import os
from typing import TYPE_CHECKING

from agent.ui.commands.catalogue import ALL, choice, parse
from agent.ui.editor import edit_text, editor_command
from agent.ui.text import one_line
from agent.ui.widgets.menu import Choice

if TYPE_CHECKING:
    from agent.ui.app import AgentApp


async def run_command(app: "AgentApp", line: str) -> None:
    """Runs a line such as `/resume 3f2`. Raises AgentError."""
    command, argument = parse(line)
    await command.run(app.host, argument)


async def run_shell(app: "AgentApp", text: str) -> None:
    """Runs `!command` in the session, or `!!command` outside of the conversation. Raises AgentError."""
    command = text.lstrip("!").strip()
    if app.bridge is not None:
        # Its events show the command and its output while it runs; the message for the model says it again.
        app.bridge.expect(f"`{command}`")
    await app.live.service("shell", command=command, context=not text.startswith("!!"))


async def choose_command(app: "AgentApp") -> None:
    chosen = await app.host.pick("Commands", [choice(command) for command in ALL])
    if chosen is None:
        return
    if chosen.value.endswith(" "):
        app.prompt.show_text(chosen.value)
    else:
        await run_command(app, chosen.value)


async def search_history(app: "AgentApp") -> None:
    entries = [Choice(text, one_line(text)) for text in app.past.newest_first()]
    chosen = await app.host.pick("What was sent in this project", entries)
    if chosen is not None:
        app.prompt.show_text(chosen.value)


async def edit_outside(app: "AgentApp") -> None:
    """Raises UsageError: there is no editor, or it failed."""
    command = editor_command(os.environ)
    text = app.prompt.pastes.expand(app.prompt.text)
    with app.suspend(), app.batch_update():
        edited = await edit_text(text, command)
    app.prompt.show_text(edited)
    app.refresh(layout=True)
