"""Where formatters and checks meet an edit: around the tools that change files."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.app.files.authorship import Authorship
from agent.app.turns.around import ToolAround
from agent.core.tool import FileDiff, Tool, ToolContext, ToolResult
from agent.edits.findings import Finding, changed_lines
from agent.edits.runner import EditRunner

MOST_LINES_TOLD = 8
"""So many findings the model is told of after one edit."""


class EditedTool(ToolAround):
    """A tool that changes files, whose files are formatted and checked after that.

    The diff is the one after formatting. What a formatter does is the run's own doing, undo covers it, and
    the model may go on editing without reading the file again.
    """

    def __init__(self, tool: Tool, edits: EditRunner, authorship: Authorship) -> None:
        super().__init__(tool)
        self._edits = edits
        self._authorship = authorship

    async def run(self, params: Any, context: ToolContext) -> ToolResult:
        for path in self._targets(params, context):
            with self._authorship.of_the_check():
                await self._edits.before(path)
        result = await self._tool.run(params, context)
        if result.is_error or not result.diffs:
            return result
        notes: list[str] = []
        diffs = list(result.diffs)
        # The edit is made: whoever cancels now is told so, and of no formatting that was broken off.
        with suppress(asyncio.CancelledError):
            for number, diff in enumerate(result.diffs):
                diffs[number] = await self._formatted(diff, context, notes)
                await self._checked(diffs[number], context, notes)
        return replace(result, model_text="\n".join([result.model_text, *notes]), diffs=tuple(diffs))

    def _targets(self, params: Any, context: ToolContext) -> list[Path]:
        """The files that a call is about. A preview counts as a try, so it is only asked where need be."""
        named = getattr(params, "path", None)
        if isinstance(named, str):
            path = _resolved(named, context)
            return [path] if path is not None else []
        planned = self.preview(params, context)
        return [_place(diff, context) for diff in planned.diffs] if planned is not None else []

    async def _formatted(self, diff: FileDiff, context: ToolContext, notes: list[str]) -> FileDiff:
        """The diff as it is after formatting; what the model has to know of that is added to `notes`."""
        path = _place(diff, context)
        if diff.after is None or not path.is_file():
            return diff
        with self._authorship.of_a_command():
            formatted = await self._edits.format(path, is_new=diff.before is None)
        notes += _as_lines("The formatter has problems with this", formatted.findings)
        if not formatted.by:
            return diff
        # Undo covers what is there now, and the model may edit it without reading it again.
        context.ledger.record(path)
        final = _text_of(path, context)
        if final is None or final == diff.after:
            return diff
        notes.append(_note(diff, final, ", ".join(formatted.by)))
        return replace(diff, after=final)

    async def _checked(self, diff: FileDiff, context: ToolContext, notes: list[str]) -> None:
        if diff.after is None:
            return
        with self._authorship.of_the_check():
            checked = await self._edits.check(
                _place(diff, context), changed_lines(diff.before or "", diff.after)
            )
        room = MOST_LINES_TOLD
        for check in checked:
            notes += _as_lines(f"New problems, says `{check.label}`", check.findings, room)
            room = max(1, room - len(check.findings))


def with_edits(tools: Sequence[Tool], edits: EditRunner, authorship: Authorship) -> tuple[Tool, ...]:
    """The tools, with those that change files wrapped if anything is to happen after edits."""
    if not edits.steps:
        return tuple(tools)
    return tuple(EditedTool(tool, edits, authorship) if hasattr(tool, "preview") else tool for tool in tools)


def write_back(workspace: Path, path: Path, data: bytes) -> None:
    """Replaces a file in one step. Raises OSError."""
    from tools._text.files import replace_file
    from tools._text.paths import RefusalError

    try:
        replace_file(workspace, path, data)
    except RefusalError as refusal:
        raise OSError(str(refusal)) from None


def _place(diff: FileDiff, context: ToolContext) -> Path:
    """The file itself where a link leads to one: a formatter would replace the link."""
    return (context.workspace / diff.path).resolve()


def _resolved(name: str, context: ToolContext) -> Path | None:
    from tools._text.paths import RefusalError, resolve

    try:
        return resolve(context, name).resolve()
    except (RefusalError, OSError):
        return None


def _text_of(path: Path, context: ToolContext) -> str | None:
    from tools._text.encodings import presentable
    from tools._text.files import load_text
    from tools._text.paths import RefusalError

    try:
        return presentable(load_text(context.workspace, path).decoded.text)
    except RefusalError:
        return None


def _note(diff: FileDiff, final: str, by: str) -> str:
    if final == diff.before:
        return f"`{by}` then formatted {diff.path}: it reads as before this edit again."
    lines = changed_lines(diff.after or "", final)
    which = f"line {lines[0]} is" if len(lines) == 1 else f"lines {lines[0]}-{lines[-1]} are"
    return f"`{by}` then formatted {diff.path}: {which} laid out differently."


def _as_lines(title: str, findings: Sequence[Finding], room: int = MOST_LINES_TOLD) -> list[str]:
    if not findings:
        return []
    left = len(findings) - room
    more = [f"({left} more)"] if left > 0 else []
    return ["\n".join([f"{title}:", *(found.text for found in findings[:room]), *more])]
