"""Replacing text in a file, tolerant of white space and strict about everything else."""

from pathlib import Path

from pydantic import BaseModel

from agent.core.errors import AgentError
from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of
from tools._edit.change import Change, carry_out, diff_of
from tools._edit.misses import Misses
from tools._edit.replacing import replaced
from tools._text.encodings import presentable
from tools._text.files import encoded, is_large, load_text
from tools._text.paths import RefusalError, resolve, shown


class EditParams(BaseModel):
    path: str
    old: str
    new: str
    all: bool = False


class EditTool:
    name = "edit"
    params: type[BaseModel] = EditParams
    access: Access = "write"

    def __init__(self) -> None:
        self.description = description_of(self.name)
        self._misses = Misses()

    def preview(self, params: EditParams, context: ToolContext) -> ToolResult:
        """What `run` would give now, with nothing changed."""
        try:
            planned = self._plan(params, context, foreseen=True)
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        return ToolResult(planned.said, diffs=(planned.diff,))

    async def run(self, params: EditParams, context: ToolContext) -> ToolResult:
        try:
            if is_large(context.workspace / params.path.strip()):
                import asyncio

                planned = await asyncio.to_thread(self._plan, params, context)
            else:
                planned = self._plan(params, context)
            carry_out((planned,), context)
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        except AgentError as error:  # the original could not be kept, so nothing was changed
            return ToolResult(error.message, is_error=True)
        return ToolResult(planned.said, diffs=(planned.diff,))

    def start_over(self) -> None:
        """A fresh attempt at the task may make the mistakes of the one before."""
        self._misses.forget()

    def _plan(self, params: EditParams, context: ToolContext, *, foreseen: bool = False) -> Change:
        """What the edit comes to, without doing it; `foreseen` for a preview."""
        path = resolve(context, params.path)
        name = shown(context.workspace, path)
        loaded = load_text(context.workspace, path)
        before = loaded.decoded
        known = require_fresh(path, name, context)
        text, said = replaced(
            before.text, name, params, is_known=known, misses=self._misses, foreseen=foreseen
        )
        return Change(
            path=path,
            before=loaded.data,
            after=encoded(name, text, before.format),
            status=loaded.status,
            diff=diff_of(name, before.text, text),
            said=said,
        )


def require_fresh(path: Path, name: str, context: ToolContext) -> bool:
    """Whether the model has seen the file; raises if it has seen another version of it."""
    if context.ledger.seen(path) is None:
        return False
    if context.ledger.is_stale(path):
        raise RefusalError(f"{name} changed on disk since you read it. Read it again first.")
    return True
