"""What takes more than a call: running a command, a shell line, searching, the external editor."""

import asyncio
import os
import time
from typing import TYPE_CHECKING

from agent.core.errors import UsageError
from agent.ui.commands.catalogue import ALL, choice, run_line
from agent.ui.editor import edit_text, editor_command
from agent.ui.text import one_line
from agent.ui.widgets.menu import Choice

_READING_SECONDS = 6.0

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


async def paste(app: "AgentApp", desk: "Desk") -> None:
    """The clipboard's image, where there is one and the model can see it; else what was copied in here."""
    from agent.ui.clipboard_image import image_in_clipboard, save_image

    content = await asyncio.to_thread(image_in_clipboard, os.environ, app.options.read_clipboard)
    if not content:
        app.prompt.action_paste()
        return
    blind = str(await desk.live.service("blindness"))
    if blind:
        app.say(f"The image stays out: {blind}", _READING_SECONDS)
        return
    folder = app.options.state_folder
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = await asyncio.to_thread(save_image, content, folder / "pasted", stamp) if folder else None
    if path is None:
        app.say("The image of the clipboard cannot be kept on this disk", _READING_SECONDS)
    else:
        app.prompt.insert_image(path)


async def edit_outside(app: "AgentApp", _desk: "Desk") -> None:
    """Raises UsageError: there is no editor, or it failed."""
    command = editor_command(os.environ)
    text = app.prompt.pastes.expand(app.prompt.text)
    failure: UsageError | None = None
    with app.suspend(), app.batch_update():
        # An error that left this block would leave the terminal to the editor, without screen and keys.
        try:
            text = await edit_text(text, command)
        except UsageError as error:
            failure = error
    app.refresh(layout=True)
    if failure is not None:
        raise failure
    app.prompt.show_text(text)
