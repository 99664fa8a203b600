"""A task that begins like a slash command: what the custom command or skill of that name says."""

import asyncio
import os
from pathlib import Path

from agent.app.extension_services import ExtensionServices
from agent.app.extensions import Extensions, find_custom_commands, find_skills


async def spelled_out(text: str, extensions: Extensions) -> str:
    """`text` as it is, unless its first word is `/NAME` of a custom command or a skill. Reads files.

    Raises:
        UsageError: the skill cannot be used.
    """
    word, rest = (*text.split(maxsplit=1), "", "")[:2]
    if not word.startswith("/") or not await asyncio.to_thread(_is_known, word[1:], extensions.workspace):
        return text
    return await ExtensionServices(extensions).expand({"name": word, "arguments": rest})


def _is_known(name: str, workspace: Path) -> bool:
    if find_custom_commands(workspace, os.environ).get(name) is not None:
        return True
    return find_skills(workspace, os.environ).get(name) is not None
