"""Changing several files by one patch, for models that are trained on this form."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agent.core.errors import AgentError
from agent.core.tool import Access, Tool, ToolContext, ToolResult
from tools._description import description_of
from tools._edit.change import Change, carry_out, diff_of
from tools._edit.envelope import FilePatch, parsed, paths_in
from tools._edit.hunks import Misfit, placed
from tools._edit.misses import Misses, line_numbers, not_found, not_unique
from tools._edit.of_files import EditOfFiles
from tools._text.encodings import TextFormat, presentable
from tools._text.files import encoded, load_text, read_regular, require_file
from tools._text.line_ends import NormalisedText
from tools._text.paths import RefusalError, reason, resolve, shown
from tools.edit import require_fresh


class PatchParams(BaseModel):
    input: str


class PatchTool:
    """All files of a patch are changed, or none. The gate judges it as an `edit` of each of them."""

    name = "apply_patch"
    params: type[BaseModel] = PatchParams
    access: Access = "write"

    def __init__(self) -> None:
        self.description = description_of("patch")
        self._misses = Misses()

    def acts_as(self, params: PatchParams) -> tuple[Tool, Mapping[str, Any]] | ToolResult:
        try:
            paths = paths_in(parsed(params.input))
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        return EditOfFiles(self, params), {"paths": paths}

    def preview(self, params: PatchParams, context: ToolContext) -> ToolResult:
        """What `run` would give now, with nothing changed."""
        try:
            return _result(self._plan(params, context, foreseen=True))
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        except OSError as error:
            return ToolResult(f"The patch cannot be applied: {reason(error)}.", is_error=True)

    async def run(self, params: PatchParams, context: ToolContext) -> ToolResult:
        import asyncio

        try:
            changes = await asyncio.to_thread(self._plan, params, context)
            carry_out(changes, context)
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        except AgentError as error:  # an original could not be kept, so nothing was changed
            return ToolResult(error.message, is_error=True)
        except OSError as error:  # a name that is too long, a folder that may not be entered
            return ToolResult(f"The patch cannot be applied: {reason(error)}.", is_error=True)
        return _result(changes)

    def start_over(self) -> None:
        """A fresh attempt at the task may make the mistakes of the one before."""
        self._misses.forget()

    def _plan(self, params: PatchParams, context: ToolContext, *, foreseen: bool = False) -> list[Change]:
        patches = parsed(params.input)
        changes: list[Change] = []
        for patch in patches:
            place = _Place.of(patch.path, context)
            if patch.kind == "Add":
                changes.append(_added(place, patch))
            elif patch.kind == "Delete":
                _require_no_link(place)
                changes.append(_deleted(place, context))
            else:
                changes += self._updated(place, patch, context, foreseen)
        twice = {change.path for change in changes if sum(other.path == change.path for other in changes) > 1}
        if twice:
            names = ", ".join(sorted(shown(context.workspace, path) for path in twice))
            raise RefusalError(f"{names} is in the patch twice. Put all changes of a file into one section.")
        return changes

    def _updated(
        self, place: "_Place", patch: FilePatch, context: ToolContext, foreseen: bool
    ) -> list[Change]:
        loaded = load_text(context.workspace, place.path)
        known = require_fresh(place.path, place.name, context)
        content = NormalisedText(loaded.decoded.text)
        matches = placed(content.text, patch.hunks, is_tolerant=known)
        if isinstance(matches, Misfit):
            raise self._misfit(matches, content, place.name, known, foreseen)
        text = content.with_replacements((match.start, match.end, match.replacement) for match in matches)
        if text == loaded.decoded.text and patch.moved_to is None:
            raise RefusalError(f"Nothing changed: {place.name} already reads like that. Go on.")
        lines = line_numbers(content, [match.start for match in matches])
        said = f"Edited {place.name} at line {lines}." if matches else f"Moved {place.name}."
        data = encoded(place.name, text, loaded.decoded.format)
        if patch.moved_to is None:
            diff = diff_of(place.name, loaded.decoded.text, text)
            return [
                Change(
                    path=place.path,
                    before=loaded.data,
                    after=data,
                    status=loaded.status,
                    diff=diff,
                    said=said,
                )
            ]
        _require_no_link(place)
        target = _Place.of(patch.moved_to, context)
        _require_absent(target, "Move to a path that is free.")
        gone = diff_of(place.name, loaded.decoded.text, None)
        made = diff_of(target.name, None, text)
        mode = loaded.status.st_mode & 0o7777
        return [
            Change(path=target.path, before=None, after=data, status=None, diff=made, said=said, mode=mode),
            Change(
                path=place.path,
                before=loaded.data,
                after=None,
                status=loaded.status,
                diff=gone,
                said=f"It is {target.name} now.",
            ),
        ]

    def _misfit(
        self, misfit: Misfit, content: NormalisedText, name: str, known: bool, foreseen: bool
    ) -> RefusalError:
        old, new = "\n".join(misfit.hunk.old), "\n".join(misfit.hunk.new)
        if not known and not misfit.starts:
            return RefusalError(
                f"Change {misfit.number} was not found exactly in {name}, which you have not read. "
                "Read it first."
            )
        times = self._misses.count(name, f"{misfit.number}\n{old}\n{new}", content.text, foreseen=foreseen)
        if misfit.starts:
            what = f"The old lines of change {misfit.number} are"
            advice = "Add neighbouring lines, or @@ and the line that begins the function they are in."
            return not_unique(content, name, misfit.starts, times, what=what, advice=advice)
        what = f"the text of change {misfit.number} (its lines with a space or -)"
        return not_found(content, name, old, new, times, what=what)


@dataclass(frozen=True, slots=True)
class _Place:
    """A file. `path` is where links lead to."""

    path: Path
    name: str
    is_link: bool

    @classmethod
    def of(cls, given: str, context: ToolContext) -> "_Place":
        path = resolve(context, given)
        return cls(path, shown(context.workspace, path), (context.workspace / given.strip()).is_symlink())


def _added(place: _Place, patch: FilePatch) -> Change:
    _require_absent(place, "Use *** Update File for it.")
    text = "".join(f"{line}\n" for line in patch.lines)
    return Change(
        path=place.path,
        before=None,
        after=encoded(place.name, text, TextFormat()),
        status=None,
        diff=diff_of(place.name, None, text),
        said=f"Created {place.name}, {len(patch.lines)} lines.",
    )


def _deleted(place: _Place, context: ToolContext) -> Change:
    status = require_file(context.workspace, place.path)
    require_fresh(place.path, place.name, context)
    data = read_regular(place.path)
    return Change(
        path=place.path,
        before=data,
        after=None,
        status=status,
        diff=diff_of(place.name, data.decode("utf-8", "replace"), None),
        said=f"Deleted {place.name}.",
    )


def _require_no_link(place: _Place) -> None:
    if place.is_link:
        raise RefusalError(f"A link leads to {place.name}. Delete or move links with a shell command.")


def _require_absent(place: _Place, advice: str) -> None:
    if place.path.exists():
        raise RefusalError(f"{place.name} exists already. {advice}")


def _result(changes: list[Change]) -> ToolResult:
    return ToolResult(
        "\n".join(change.said for change in changes), diffs=tuple(change.diff for change in changes)
    )
