"""Creating files, and replacing files that the model knows."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from agent.core.errors import AgentError
from agent.core.tool import Access, FileDiff, ToolContext, ToolResult
from tools._description import description_of
from tools._edit.prefixes import cleaned_content, without_line_numbers
from tools._text.encodings import DecodedText, TextFormat, presentable
from tools._text.files import encoded, is_folder, load_text, replace_file
from tools._text.line_ends import LF, dominant, normalise
from tools._text.paths import RefusalError, reason, resolve, shown


class WriteParams(BaseModel):
    path: str
    content: str


class WriteTool:
    name = "write"
    params: type[BaseModel] = WriteParams
    access: Access = "write"

    def __init__(self) -> None:
        self.description = description_of(self.name)

    def preview(self, params: WriteParams, context: ToolContext) -> ToolResult:
        """What `run` would give now, with nothing changed."""
        try:
            planned = _plan(params, context)
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        except OSError as error:
            return ToolResult(f"{params.path} cannot be written: {reason(error)}.", is_error=True)
        return ToolResult(planned.said, diffs=(planned.diff,))

    async def run(self, params: WriteParams, context: ToolContext) -> ToolResult:
        try:
            return _write(params, context)
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        except AgentError as error:  # the original could not be kept, so nothing was changed
            return ToolResult(error.message, is_error=True)
        except OSError as error:  # a name that is too long, a folder that may not be entered
            return ToolResult(f"{params.path} cannot be written: {reason(error)}.", is_error=True)


@dataclass(frozen=True, slots=True)
class _Planned:
    path: Path
    data: bytes
    diff: FileDiff
    said: str


def _write(params: WriteParams, context: ToolContext) -> ToolResult:
    planned = _plan(params, context)
    context.ledger.before_change(planned.path)
    replace_file(context.workspace, planned.path, planned.data)
    context.ledger.record(planned.path)
    return ToolResult(planned.said, diffs=(planned.diff,))


def _plan(params: WriteParams, context: ToolContext) -> _Planned:
    """What the call comes to, without doing it."""
    path = resolve(context.workspace, params.path)
    name = shown(context.workspace, path)
    if is_folder(path):
        raise RefusalError(f"{name} is a folder. Give the path of a file in it.")
    content, removed = cleaned_content(path, params.content)
    exists = path.exists()
    data, before = load_text(context.workspace, path) if exists else (b"", DecodedText("", TextFormat()))
    if removed and without_line_numbers(normalise(before.text)) is not None:
        content, removed = params.content, ""
    text = _with_line_ends_of(before.text, content)
    new_data = encoded(name, text, before.format)
    if exists:
        if new_data == data:
            raise RefusalError(
                f"Nothing changed: {name} already has exactly this content. Go on with the next step."
            )
        _require_known(path, name, data, context)
    lines = text.count(LF) + (not text.endswith(LF) and bool(text))
    note = f" {removed[:1].upper()}{removed[1:]} were removed." if removed else ""
    return _Planned(
        path,
        new_data,
        FileDiff(name, presentable(before.text) if exists else None, presentable(text)),
        f"{'Replaced' if exists else 'Created'} {name}, {lines} lines.{note}",
    )


def _require_known(path: Path, name: str, data: bytes, context: ToolContext) -> None:
    if data and context.ledger.seen(path) is None:
        raise RefusalError(f"{name} exists and you have not read it. Read it first, then use edit or write.")
    if data and context.ledger.is_stale(path):
        raise RefusalError(f"{name} changed on disk since you read it. Read it again first.")


def _with_line_ends_of(before: str, content: str) -> str:
    line_end = dominant(before)
    return normalise(content).replace(LF, line_end) if line_end else content
