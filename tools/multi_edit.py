"""Several replacements at once, in one file or several: all of them, or none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agent.core.errors import AgentError
from agent.core.tool import Access, Tool, ToolContext, ToolResult
from tools._description import description_of
from tools._edit.change import Change, carry_out, diff_of
from tools._edit.misses import Misses
from tools._edit.of_files import EditOfFiles, paths_once
from tools._edit.replacing import replaced
from tools._text.encodings import presentable
from tools._text.files import LoadedText, encoded, load_text
from tools._text.paths import RefusalError, resolve, shown
from tools.edit import EditParams, require_fresh


class MultiEditParams(BaseModel):
    edits: Annotated[list[EditParams], Field(min_length=1)]


class MultiEditTool:
    """All files are changed, or none. The gate judges it as an `edit` of each of them."""

    name = "multi_edit"
    params: type[BaseModel] = MultiEditParams
    access: Access = "write"

    def __init__(self) -> None:
        self.description = description_of(self.name)
        self._misses = Misses()

    def acts_as(self, params: MultiEditParams) -> tuple[Tool, Mapping[str, Any]]:
        return EditOfFiles(self, params), {"paths": paths_once([edit.path for edit in params.edits])}

    def preview(self, params: MultiEditParams, context: ToolContext) -> ToolResult:
        """What `run` would give now, with nothing changed."""
        try:
            return _result(self._plan(params, context, foreseen=True))
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)

    async def run(self, params: MultiEditParams, context: ToolContext) -> ToolResult:
        import asyncio

        try:
            changes = await asyncio.to_thread(self._plan, params, context)
            carry_out(changes, context)
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        except AgentError as error:  # an original could not be kept, so nothing was changed
            return ToolResult(error.message, is_error=True)
        return _result(changes)

    def start_over(self) -> None:
        """A fresh attempt at the task may make the mistakes of the one before."""
        self._misses.forget()

    def _plan(self, params: MultiEditParams, context: ToolContext, *, foreseen: bool = False) -> list[Change]:
        files: dict[Path, _File] = {}
        for number, edit in enumerate(params.edits, 1):
            try:
                path = resolve(context, edit.path)
                if path not in files:
                    files[path] = _File.of(path, context)
                files[path].change(edit, self._misses, foreseen)
            except RefusalError as refusal:
                nothing = " No file was changed." if len(params.edits) > 1 else ""
                raise RefusalError(f"Edit {number}: {refusal}{nothing}") from None
        return [file.as_change() for file in files.values()]


@dataclass(slots=True, kw_only=True)
class _File:
    """A file with the edits made so far; `text` is what they come to."""

    path: Path
    name: str
    loaded: LoadedText
    is_known: bool
    text: str
    said: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path, context: ToolContext) -> "_File":
        name = shown(context.workspace, path)
        loaded = load_text(context.workspace, path)
        is_known = require_fresh(path, name, context)
        return cls(path=path, name=name, loaded=loaded, is_known=is_known, text=loaded.decoded.text)

    def change(self, edit: EditParams, misses: Misses, foreseen: bool) -> None:
        self.text, said = replaced(
            self.text, self.name, edit, is_known=self.is_known, misses=misses, foreseen=foreseen
        )
        self.said.append(said)

    def as_change(self) -> Change:
        before = self.loaded.decoded
        if self.text == before.text:
            raise RefusalError(f"Nothing changed: the edits of {self.name} undo each other.")
        return Change(
            path=self.path,
            before=self.loaded.data,
            after=encoded(self.name, self.text, before.format),
            status=self.loaded.status,
            diff=diff_of(self.name, before.text, self.text),
            said="\n".join(self.said),
        )


def _result(changes: list[Change]) -> ToolResult:
    return ToolResult(
        "\n".join(change.said for change in changes), diffs=tuple(change.diff for change in changes)
    )
