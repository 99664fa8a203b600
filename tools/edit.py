"""Replacing text in a file, tolerant of white space and strict about everything else."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from agent.core.errors import AgentError
from agent.core.tool import Access, FileDiff, ToolContext, ToolResult
from tools._description import description_of
from tools._edit.matching import Found, Match, find
from tools._edit.nearest import nearest_region
from tools._edit.prefixes import without_line_numbers
from tools._text.encodings import presentable
from tools._text.files import encoded, load_text, replace_file
from tools._text.line_ends import NormalisedText, normalise
from tools._text.paths import RefusalError, resolve, shown
from tools._text.truncation import shortened

_LINES_NAMED = 10


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

    def preview(self, params: EditParams, context: ToolContext) -> ToolResult:
        """What `run` would give now, with nothing changed."""
        try:
            planned = _plan(params, context)
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        return ToolResult(planned.said, diffs=(planned.diff,))

    async def run(self, params: EditParams, context: ToolContext) -> ToolResult:
        try:
            return _edit(params, context)
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        except AgentError as error:  # the original could not be kept, so nothing was changed
            return ToolResult(error.message, is_error=True)


@dataclass(frozen=True, slots=True)
class _Planned:
    path: Path
    data: bytes
    diff: FileDiff
    said: str


def _edit(params: EditParams, context: ToolContext) -> ToolResult:
    planned = _plan(params, context)
    context.ledger.before_change(planned.path)
    replace_file(context.workspace, planned.path, planned.data)
    context.ledger.record(planned.path)
    return ToolResult(planned.said, diffs=(planned.diff,))


def _plan(params: EditParams, context: ToolContext) -> _Planned:
    """What the edit comes to, without doing it."""
    path = resolve(context.workspace, params.path)
    name = shown(context.workspace, path)
    _, before = load_text(context.workspace, path)
    known = _require_fresh(path, name, context)
    wanted = _Wanted.of(params)
    content = NormalisedText(before.text)
    found = wanted.find_in(content, name)
    if not known and found.level != "exact":
        raise RefusalError(f"old was not found exactly in {name}, which you have not read. Read it first.")
    chosen = _chosen(found, content, name, params.all)
    text = content.with_replacements((match.start, match.end, match.replacement) for match in chosen)
    if text == before.text:
        raise RefusalError(f"Nothing changed: {name} already reads like new there. Go on with the next step.")
    lines = _line_numbers(content, chosen)
    note = "" if found.level == "exact" else f" ({found.level} differed and was adapted)"
    return _Planned(
        path,
        encoded(name, text, before.format),
        FileDiff(name, presentable(before.text), presentable(text)),
        f"Edited {name} at line {lines}{note}.",
    )


def _require_fresh(path: Path, name: str, context: ToolContext) -> bool:
    """Whether the model has seen the file; raises if it has seen another version of it."""
    if context.ledger.seen(path) is None:
        return False
    if context.ledger.is_stale(path):
        raise RefusalError(f"{name} changed on disk since you read it. Read it again first.")
    return True


@dataclass(frozen=True, slots=True)
class _Wanted:
    old: str
    new: str

    @classmethod
    def of(cls, params: EditParams) -> "_Wanted":
        if not params.old:
            raise RefusalError("old is empty. Copy the text to replace from the file into old.")
        if params.old == params.new:
            raise RefusalError("Nothing changed: old and new are the same. Put the changed text into new.")
        return cls(normalise(params.old), normalise(params.new))

    def find_in(self, content: NormalisedText, name: str) -> Found:
        found = find(content.text, self.old, self.new)
        if found:
            return found
        plain_old = without_line_numbers(self.old)
        if plain_old:
            plain_new = without_line_numbers(self.new)
            found = find(content.text, plain_old, self.new if plain_new is None else plain_new)
        if found:
            return found
        raise RefusalError(self._not_found(content, name, plain_old or self.old))

    def _not_found(self, content: NormalisedText, name: str, old: str) -> str:
        if not content.text:
            return f"{name} is empty. Use write to give it content."
        region = nearest_region(content.text, old)
        if region is None:
            return f"old was not found in {name}, nor anything like it. Read the file first."
        already = content.text.find(self.new) if self.new.strip() else -1
        if already >= 0 and abs(content.line_of(already) - region.first) <= 1:
            return (
                f"old is not in {name}, but new is there already, at line {content.line_of(already)}. Go on."
            )
        lines = "\n".join(shortened(line, 300) for line in region.numbered().split("\n"))
        return f"old was not found in {name}. The nearest lines are:\n{lines}\nCopy old exactly from there."


def _chosen(found: Found, content: NormalisedText, name: str, every: bool) -> tuple[Match, ...]:
    if len(found.matches) == 1 or every:
        return found.matches
    lines = _line_numbers(content, found.matches)
    raise RefusalError(
        f"old is {len(found.matches)} times in {name}, at lines {lines}. "
        "Add neighbouring lines to old to make it unique, or set all."
    )


def _line_numbers(content: NormalisedText, matches: tuple[Match, ...]) -> str:
    named = ", ".join(str(content.line_of(match.start)) for match in matches[:_LINES_NAMED])
    return f"{named} and {len(matches) - _LINES_NAMED} more" if len(matches) > _LINES_NAMED else named
