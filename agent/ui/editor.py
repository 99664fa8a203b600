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
        UsageError: the text cannot be handed over, the editor does not start or ends with an error; nothing
            is changed then.
    """
    path = _handed_over(text)
    try:
        process = await asyncio.create_subprocess_exec(*command, str(path))
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


def _handed_over(text: str) -> Path:
    """A file with the text. Raises UsageError where no disk has room for it."""
    path: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix="agent-", suffix=".md")
        path = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
    except OSError as error:
        if path is not None:
            path.unlink(missing_ok=True)
        raise UsageError(
            f"the text cannot be handed to an editor: {error.strerror}",
            "set TMPDIR to a folder that can be written to",
        ) from error
    return path
