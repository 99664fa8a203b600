"""Showing files and folders to the model."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of
from tools._text.encodings import detect, detect_beginning, presentable
from tools._text.files import EDITABLE_BYTES, is_folder, is_large, require_file
from tools._text.kinds import describe, is_known_binary
from tools._text.paths import RefusalError, missing, reason, resolve, shown

DEFAULT_LINES = 400
MAX_BYTES = 16 * 1024
MAX_LINE_CHARACTERS = 2000
MAX_ENTRIES = 200
AS_ABOVE = "unchanged, as shown above."
LEAST_REPEATED_CHARACTERS = 300
"""Shorter results are shown again: the answer that nothing changed would save nothing."""

COUNTED_BYTES = 8 * 1024 * 1024
"""Up to this size the number of lines is told, beyond it only that there are more."""


class ReadParams(BaseModel):
    path: str
    start: int | None = None
    lines: int | None = None


class ReadTool:
    name = "read"
    params: type[BaseModel] = ReadParams
    access: Access = "read"

    def __init__(self) -> None:
        self.description = description_of(self.name)

    async def run(self, params: ReadParams, context: ToolContext) -> ToolResult:
        try:
            path = resolve(context, params.path, context.spill_folder)
            if is_folder(path):
                return ToolResult(_listed(context.workspace, path))
            if is_large(path):
                import asyncio

                text = await asyncio.to_thread(_shown_file, params, path, context)
            else:
                text = _shown_file(params, path, context)
            return ToolResult(_unless_in_view(shown(context.workspace, path), text, context))
        except RefusalError as refusal:
            return ToolResult(str(refusal), is_error=True)


def _listed(workspace: Path, folder: Path) -> str:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise RefusalError(f"{shown(workspace, folder)} cannot be listed: {reason(error)}.") from None
    # `is_dir` of a path, not of the entry: that one raises where links lead in a circle.
    names = [f"{presentable(one.name)}{'/' * Path(one).is_dir()}" for one in entries if one.name != ".git"]
    if not names:
        return "(empty folder)"
    text = "\n".join(names[:MAX_ENTRIES])
    more = len(names) - MAX_ENTRIES
    return f"{text}\n({more} more entries; use glob to find a name)" if more > 0 else text


def _shown_file(params: ReadParams, path: Path, context: ToolContext) -> str:
    name = shown(context.workspace, path)
    status = require_file(context.workspace, path)
    try:
        with path.open("rb") as stream:
            beginning = stream.read(COUNTED_BYTES)
            complete = len(beginning) == status.st_size or not stream.read(1)
            format_ = detect(beginning) if complete else detect_beginning(beginning)
            if format_ is None or is_known_binary(beginning):
                return f"{name}: {describe(beginning)}, {max(status.st_size, len(beginning))} bytes, no text."
            stream.seek(0)
            source = io.BytesIO(beginning) if complete else stream
            source.seek(len(format_.bom))
            text = io.TextIOWrapper(source, format_.encoding, _lenient(format_.errors), newline="\n")
            result = _excerpt(text, name, params, complete)
    except FileNotFoundError:
        raise missing(context.workspace, path) from None
    except OSError as error:
        raise RefusalError(f"{name} cannot be read: {reason(error)}.") from None
    # What cannot be edited needs no checksum, for which gigabytes of a log would be read.
    if status.st_size <= EDITABLE_BYTES:
        context.ledger.record(path)
    return presentable(result)


def _unless_in_view(name: str, text: str, context: ToolContext) -> str:
    if len(text) >= LEAST_REPEATED_CHARACTERS and context.is_in_view(name, text):
        return f"{name}{_which_lines(text)}: {AS_ABOVE}"
    return text


def _which_lines(result: str) -> str:
    """Which lines a part of a file is, and how it goes on; nothing for a whole file."""
    last = result.rpartition("\n")[2]
    return f" {last}" if last.startswith("(lines ") else ""


def _lenient(errors: str) -> str:
    return "replace" if errors in ("strict", "replace") else errors


def _excerpt(text: io.TextIOWrapper, name: str, params: ReadParams, complete: bool) -> str:
    first = max(1, params.start or 1)
    wanted = params.lines if params.lines and params.lines > 0 else DEFAULT_LINES
    numbered: list[str] = []
    size = number = 0
    full = False
    for number, (line, hidden) in enumerate(_lines(text), 1):
        if number < first or full:
            if full and not complete:
                break
            continue
        entry = f"{number}\t{line}" + (f"… (+{hidden} characters)" if hidden else "")
        size += len(entry.encode("utf-8", "replace")) + 1
        if numbered and (len(numbered) == wanted or size > MAX_BYTES):
            full = True
            continue
        numbered.append(entry)
    if not number:
        return "(empty file)"
    if not numbered:
        length = "1 line" if number == 1 else f"{number} lines"
        raise RefusalError(f"{name} has only {length}. Give a smaller start.")
    last = first + len(numbered) - 1
    if full:
        total = f" of {number}" if complete else ""
        numbered.append(f"(lines {first}-{last}{total}; go on with start={last + 1})")
    return "\n".join(numbered)


def _lines(text: io.TextIOWrapper) -> Iterator[tuple[str, int]]:
    """Lines without their ends, and how many characters of an overlong line are not held."""
    while piece := text.readline(MAX_LINE_CHARACTERS):
        line, hidden = piece, 0
        while not piece.endswith("\n") and (piece := text.readline(1 << 16)):
            hidden += len(piece.removesuffix("\n"))
        yield line.removesuffix("\n").removesuffix("\r"), hidden
