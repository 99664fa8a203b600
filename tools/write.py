"""Creating files, and replacing files that the model knows."""

from pathlib import Path

from pydantic import BaseModel

from agent.core.errors import AgentError
from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of
from tools._edit.change import Change, carry_out, diff_of
from tools._edit.prefixes import cleaned_content, without_line_numbers
from tools._text.encodings import DecodedText, TextFormat, presentable
from tools._text.files import LoadedText, encoded, is_folder, load_text
from tools._text.line_ends import LF, dominant, normalise
from tools._text.paths import RefusalError, reason, require_no_second_root, resolve, shown


class WriteParams(BaseModel):
    path: str
    content: str


class WriteTool:
    name = "write"
    params: type[BaseModel] = WriteParams
    access: Access = "write"

    def __init__(self, for_changes: str | None = "edit") -> None:
        """`for_changes` is the tool to be used for small ones, None where there is none."""
        self.description = description_of(self.name)
        if for_changes:
            self.description += f" Use {for_changes} for small changes."

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
            planned = _plan(params, context)
            carry_out((planned,), context)
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        except AgentError as error:  # the original could not be kept, so nothing was changed
            return ToolResult(error.message, is_error=True)
        except OSError as error:  # a name that is too long, a folder that may not be entered
            return ToolResult(f"{params.path} cannot be written: {reason(error)}.", is_error=True)
        return ToolResult(planned.said, diffs=(planned.diff,))


def _plan(params: WriteParams, context: ToolContext) -> Change:
    """What the call comes to, without doing it."""
    path = resolve(context, params.path)
    name = shown(context.workspace, path)
    if is_folder(path):
        raise RefusalError(f"{name} is a folder. Give the path of a file in it.")
    content, removed = cleaned_content(path, params.content)
    loaded: LoadedText | None = load_text(context.workspace, path) if path.exists() else None
    if loaded is None and path.is_relative_to(context.workspace):
        require_no_second_root(context.workspace, path)
    before = loaded.decoded if loaded else DecodedText("", TextFormat())
    if removed and without_line_numbers(normalise(before.text)) is not None:
        content, removed = params.content, ""
    text = _with_line_ends_of(before.text, content)
    new_data = encoded(name, text, before.format)
    if loaded:
        if new_data == loaded.data:
            raise RefusalError(
                f"Nothing changed: {name} already has exactly this content. Go on with the next step."
            )
        _require_known(path, name, loaded.data, context)
    lines = text.count(LF) + (not text.endswith(LF) and bool(text))
    note = f" {removed[:1].upper()}{removed[1:]} were removed." if removed else ""
    return Change(
        path=path,
        before=loaded.data if loaded else None,
        after=new_data,
        status=loaded.status if loaded else None,
        diff=diff_of(name, before.text if loaded else None, text),
        said=f"{'Replaced' if loaded else 'Created'} {name}, {lines} lines.{note}",
    )


def _require_known(path: Path, name: str, data: bytes, context: ToolContext) -> None:
    if data and context.ledger.seen(path) is None:
        raise RefusalError(f"{name} exists and you have not read it. Read it first, then change it.")
    if data and context.ledger.is_stale(path):
        raise RefusalError(f"{name} changed on disk since you read it. Read it again first.")


def _with_line_ends_of(before: str, content: str) -> str:
    line_end = dominant(before)
    return normalise(content).replace(LF, line_end) if line_end else content
