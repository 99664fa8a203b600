"""A task that begins like a slash command: what the custom command, skill or prompt of a server says."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path

from agent.app.extras.extensions import Extensions, find_custom_commands, find_skills
from agent.app.mcp.servers import McpServers
from agent.core.errors import UsageError
from agent.core.likeness import most_alike
from agent.skills.printed import Printing

_LIKE_A_COMMAND = re.compile(r"/([A-Za-z][^\s/]{0,99})(?:[ \t].*)?")
_LEAST_LIKENESS = 0.65
_LITERALLY = "a space before the slash makes it plain text"


async def spelled_out(text: str, extensions: Extensions, mcp: McpServers, printing: Printing) -> str:
    """`text` as it is, unless its first word is `/NAME` of a custom command or a skill, or `/SERVER:PROMPT`.

    Reads files; a prompt starts its server, `printing` runs the commands in a command or skill.

    Raises:
        AgentError: the skill cannot be used, the server does not start or has no such prompt.
    """
    word, rest = (*text.split(maxsplit=1), "", "")[:2]
    if not word.startswith("/"):
        return text
    from agent.app.mcp.offers import McpOffers
    from agent.app.services.extensions import ExtensionServices

    offers = McpOffers(mcp, ExtensionServices(extensions, printing))
    is_prompt = offers.has_server_of(word[1:])
    if not is_prompt and not await asyncio.to_thread(_is_known, word[1:], extensions.workspace):
        return text
    return await offers.expand({"name": word, "arguments": rest})


def _is_known(name: str, workspace: Path) -> bool:
    if find_custom_commands(workspace, os.environ).get(name) is not None:
        return True
    return find_skills(workspace, os.environ).get(name) is not None


def require_known_slash(
    text: str, workspace: Path, has_server: Callable[[str], bool] = lambda _: False
) -> None:
    """Refuses one line that looks like a command and is none: a model would take the slip for a task.

    What names a path that exists is left alone, and so is whatever does not begin with the slash itself.
    `has_server` knows the MCP servers; whether one has such a prompt only itself knows, when it runs.

    Raises:
        UsageError: no custom command, skill or server has that name; names the closest one.
    """
    looks = _LIKE_A_COMMAND.fullmatch(text.rstrip())
    if looks is None:
        return
    name = looks[1]
    if Path(f"/{name}").exists() or (workspace / name).exists():
        return
    found = find_custom_commands(workspace, os.environ).commands, find_skills(workspace, os.environ).skills
    names = [one.name for group in found for one in group]
    server, colon, _ = name.partition(":")
    if name in names or (colon and has_server(server)):
        return
    starts = [known for known in names if known.startswith(name)]
    guess = starts[0] if starts else most_alike(name, names, cutoff=_LEAST_LIKENESS)
    shown = "`agent mcp list` shows the MCP servers; " if colon else "`agent skills list` shows the skills; "
    hint = f"did you mean /{guess}? " if guess else shown
    raise UsageError(f"there is no command or skill /{name[:40]}", hint + _LITERALLY)
