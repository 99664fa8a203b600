"""Editing the text of the input field in the person's own editor."""

import asyncio
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agent.core.errors import UsageError


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """The editor from VISUAL or EDITOR, else the first of a few that is installed.

    Raises:
        UsageError: there is none, or the variable cannot be read.
    """
    chosen = environment.get("VISUAL") or environment.get("EDITOR")
    if chosen:
        try:
            return shlex.split(chosen)
        except ValueError as error:
            raise UsageError(
                f"the editor {chosen!r} cannot be read: {error}", "set EDITOR, for example to nano"
            ) from error
    for name in ("nano", "vim", "vi"):
        if shutil.which(name):
            return [name]
    raise UsageError("there is no editor", "set EDITOR, for example to nano")


async def edit_text(text: str, command: list[str]) -> str:
    """Runs the editor on `text` in the foreground; the text as it was saved.

    Raises:
        UsageError: the editor does not start or ends with an error; nothing is changed then.
    """
    descriptor, name = tempfile.mkstemp(prefix="agent-", suffix=".md")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        process = await asyncio.create_subprocess_exec(*command, name)
        status = await process.wait()
        if status != 0:
            raise UsageError(f"{command[0]} ended with status {status}; the text is as it was")
        return path.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
    except OSError as error:
        raise UsageError(
            f"{command[0]} cannot be started: {error.strerror}", "set EDITOR to an editor"
        ) from error
    finally:
        path.unlink(missing_ok=True)
