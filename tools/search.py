"""Finding text in files."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pydantic import BaseModel

from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of
from tools._find.names import name_matcher
from tools._text.encodings import presentable
from tools._text.files import is_folder, require_file
from tools._text.paths import RefusalError, reason, resolve, shown
from tools._text.truncation import readable

if TYPE_CHECKING:
    from tools._find.permitted import Permitted
    from tools._find.search import Hit, Search

MAX_MATCHES = 100
MAX_CHARACTERS = 8 * 1024
SECONDS = 30.0
_BYTES_BEFORE, _BYTES_AFTER = 80, 160
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_WILDCARD = re.compile(r"[*?\[]")


class SearchParams(BaseModel):
    pattern: str
    path: str | None = None
    glob: str | None = None


class SearchTool:
    name = "search"
    params: type[BaseModel] = SearchParams
    access: Access = "read"

    def __init__(self) -> None:
        self.description = description_of(self.name)

    async def run(self, params: SearchParams, context: ToolContext) -> ToolResult:
        try:
            if not params.pattern:
                raise RefusalError("pattern is empty. Give the text to look for.")
            if "\0" in params.pattern:
                raise RefusalError("pattern contains a zero byte, which no text has. Leave it out.")
            search, prefix, permitted = _prepared(params, context)
            result = await _answer(params.pattern, search, prefix)
            return replace(result, model_text=result.model_text + await permitted.note(context.environment))
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        except OSError as error:
            return ToolResult(f"The search could not be started: {reason(error)}.", is_error=True)


@dataclass(slots=True)
class _Lines:
    """Result lines, as many as the model gets."""

    prefix: str
    lines: list[str] = field(default_factory=list)
    size: int = 0
    note: str = ""

    def add(self, hit: "Hit") -> bool:
        line = f"{self.prefix}{hit.name}:{hit.line}: {_excerpt(hit)}"
        self.size += len(line) + 1
        if len(self.lines) == MAX_MATCHES or self.size > MAX_CHARACTERS:
            self.note = "\n(there are more matches; use a narrower pattern, path or glob)"
            return False
        self.lines.append(line)
        return True

    def text(self) -> str:
        return presentable("\n".join(self.lines) or "no matches") + self.note


def _prepared(params: SearchParams, context: ToolContext) -> tuple["Search", str, "Permitted"]:
    """The search, what to put before its file names so that they start at the workspace, and its files."""
    from tools._find.permitted import Permitted
    from tools._find.search import Search

    given, name_pattern = params.path or ".", params.glob or ""
    if (
        _WILDCARD.search(given)
        and not name_pattern
        and not os.path.lexists(context.workspace / given.strip())
    ):
        path, name_pattern = context.workspace, given
    else:
        path = resolve(context, given, context.spill_folder)
    if not is_folder(path):
        require_file(context.workspace, path)
    folder, name = (path, None) if is_folder(path) else (path.parent, path.name)
    base = shown(context.workspace, folder)
    # A file that was named has been judged, and there are no others.
    may_read = context.may_read if name is None else lambda path: True
    permitted = Permitted(folder, _acceptor("" if name else name_pattern), may_read, only=name)
    search = Search(
        folder=folder,
        name=name,
        accepts=permitted.accepts,
        environment=context.environment,
        most_per_file=MAX_MATCHES + 1,
        seconds=SECONDS,
    )
    return search, "" if base == "." else f"{base}/", permitted


def _acceptor(name_pattern: str) -> Callable[[str], bool]:
    if not name_pattern.strip("*/. "):
        return lambda name: True
    try:
        matcher = name_matcher(name_pattern)
    except ValueError as error:
        raise RefusalError(f"{name_pattern!r} is no name pattern ({error}). Use one like *.py.") from None
    return lambda name: matcher.fullmatch(name) is not None


async def _answer(pattern: str, search: "Search", prefix: str) -> ToolResult:
    from tools._find.search import PatternError

    try:
        found = await _lines_of(pattern, False, search, prefix)
    except PatternError as error:
        found = await _lines_of(pattern, True, search, prefix)
        return ToolResult(
            f"Not a valid regular expression ({error}), so it was searched as plain text:\n{found.text()}",
            is_error=True,
        )
    if found.lines or not _SPECIAL.search(pattern):
        return ToolResult(found.text())
    plain = await _lines_of(pattern, True, search, prefix)
    if plain.lines:
        return ToolResult(f"no matches as a regular expression, but as plain text:\n{plain.text()}")
    return ToolResult(found.text())


async def _lines_of(pattern: str, literal: bool, search: "Search", prefix: str) -> _Lines:
    lines = _Lines(prefix)
    outcome = await search.run(pattern, literal, lines.add)
    if outcome.timed_out:
        lines.note = f"\n(stopped after {search.seconds:g} seconds; use a narrower path or a simpler pattern)"
    return lines


def _excerpt(hit: "Hit") -> str:
    """The matching line, or of a long one the part around the match."""
    text = hit.text.rstrip()
    start = max(0, hit.column - _BYTES_BEFORE) if len(text) > _BYTES_BEFORE + _BYTES_AFTER else 0
    if start >= len(text):
        start = 0
    part = text[start : start + _BYTES_BEFORE + _BYTES_AFTER]
    left, right = "…" * (start > 0), "…" * (start + len(part) < len(text))
    return f"{left}{readable(part.decode('utf-8', 'replace'))}{right}"
