"""Replacing text in a file, tolerant of white space and strict about everything else."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from agent.core.errors import AgentError
from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of
from tools._edit.change import Change, carry_out, diff_of
from tools._edit.matching import Found, Match, find
from tools._edit.misses import Misses, line_numbers, not_found, not_unique
from tools._edit.prefixes import without_line_numbers
from tools._text.encodings import presentable
from tools._text.files import LARGE_BYTES, encoded, load_text
from tools._text.line_ends import NormalisedText, normalise
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
            if _is_large(params, context):
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
        wanted = _Wanted.of(params)
        content = NormalisedText(before.text)
        found = wanted.find_in(content)
        if found is None:
            times = self._misses.count(name, params.old, content.text, foreseen=foreseen)
            raise not_found(content, name, wanted.plain_old or wanted.old, wanted.new, times)
        if not known and found.level != "exact":
            raise RefusalError(
                f"old was not found exactly in {name}, which you have not read. Read it first."
            )
        starts = [match.start for match in found.matches]
        if len(starts) > 1 and not params.all:
            times = self._misses.count(name, params.old, content.text, foreseen=foreseen)
            raise not_unique(content, name, starts, times)
        text = content.with_replacements(map(_span, found.matches))
        if text == before.text:
            raise RefusalError(
                f"Nothing changed: {name} already reads like new there. Go on with the next step."
            )
        note = "" if found.level == "exact" else f" ({found.level} differed and was adapted)"
        return Change(
            path=path,
            before=loaded.data,
            after=encoded(name, text, before.format),
            status=loaded.status,
            diff=diff_of(name, before.text, text),
            said=f"Edited {name} at line {line_numbers(content, starts)}{note}.",
        )


def require_fresh(path: Path, name: str, context: ToolContext) -> bool:
    """Whether the model has seen the file; raises if it has seen another version of it."""
    if context.ledger.seen(path) is None:
        return False
    if context.ledger.is_stale(path):
        raise RefusalError(f"{name} changed on disk since you read it. Read it again first.")
    return True


def _is_large(params: EditParams, context: ToolContext) -> bool:
    try:
        return (context.workspace / params.path.strip()).stat().st_size > LARGE_BYTES
    except (OSError, ValueError):
        return False


def _span(match: Match) -> tuple[int, int, str]:
    return match.start, match.end, match.replacement


@dataclass(frozen=True, slots=True)
class _Wanted:
    """`plain_old` and `plain_new` are without line numbers, None where there are none."""

    old: str
    new: str
    plain_old: str | None
    plain_new: str | None

    @classmethod
    def of(cls, params: EditParams) -> "_Wanted":
        if not params.old:
            raise RefusalError("old is empty. Copy the text to replace from the file into old.")
        if params.old == params.new:
            raise RefusalError("Nothing changed: old and new are the same. Put the changed text into new.")
        old, new = normalise(params.old), normalise(params.new)
        return cls(old, new, without_line_numbers(old), without_line_numbers(new))

    def find_in(self, content: NormalisedText) -> Found | None:
        found = find(content.text, self.old, self.new)
        if found or not self.plain_old:
            return found
        return find(content.text, self.plain_old, self.new if self.plain_new is None else self.plain_new)
