"""Files and folders that a person names as `@path` or `@path:10-20`: shown to the model with the message."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.app.chat.approvals import PersonGate
from agent.app.chat.pictures import keep_picture, looks_like_picture
from agent.app.mcp.offers import McpDocuments
from agent.core.errors import AgentError
from agent.core.events import Event, Notice
from agent.core.messages import Picture
from agent.core.outside_text import fenced
from agent.repo.files import list_files
from agent.repo.git import list_repo_files
from tools.read import ReadParams, ReadTool

MOST_MENTIONS = 20

_WRITTEN = re.compile(
    r'(?:^|(?<=[\s(]))@(?:"(?P<quoted>[^"\n]+)"(?P<lines>:\d+(?:-\d*)?)?|(?P<bare>[^\s"]+))', re.M
)
_LINES = re.compile(r"(?P<path>.+):(?P<first>\d+)(?:-(?P<last>\d*))?")
# What stands in pasted code (a decorator, say) is no mention, nor is what others wrote, which is fenced.
_CODE = re.compile(r"^(?P<fence>`{3,}|~{3,}).*?(?:^(?P=fence)|\Z)|`[^`\n]+`", re.M | re.S)
_AFTER_A_WORD = ".,;:!?)]}'"
_LISTED_FILES = 200
_LEAST_CHARACTERS = 200
_NAMED_AS_MISSING = 3
_WHOLE = ("(no files)", "(empty file)")


@dataclass(frozen=True, slots=True)
class Mention:
    """`path` as it was written, from the workspace. `first` and `last` are lines, counted from 1."""

    path: str
    first: int | None = None
    last: int | None = None

    @property
    def lines(self) -> int | None:
        """How many lines are wanted; None for as many as are shown by default."""
        if self.first is None or self.last is None:
            return None
        return max(1, self.last - self.first + 1)


def mentions_in(text: str, workspace: Path) -> tuple[list[Mention], list[str]]:
    """What `text` mentions, each once and in order, and the words after `@` that name nothing there."""
    found: dict[Mention, None] = {}
    missing: dict[str, None] = {}
    for match in _WRITTEN.finditer(_CODE.sub(lambda code: " " * len(code[0]), text)):
        forms = [match["bare"]] if match["bare"] else [f"{match['quoted']}{match['lines'] or ''}"]
        if match["bare"]:
            forms.append(match["bare"].rstrip(_AFTER_A_WORD))
        mention = next(filter(None, (_mention(form, workspace) for form in forms)), None)
        if mention is not None:
            found[mention] = None
        elif forms[-1]:
            missing[forms[-1]] = None
    return list(found)[:MOST_MENTIONS], list(missing)


def _mention(written: str, workspace: Path) -> Mention | None:
    if _exists(written, workspace):
        return Mention(written)
    match = _LINES.fullmatch(written)
    if match is None or not _exists(match["path"], workspace):
        return None
    first = max(1, int(match["first"]))
    last = match["last"]
    return Mention(match["path"], first, first if last is None else int(last) if last else None)


def _exists(path: str, workspace: Path) -> bool:
    try:
        return bool(path) and (workspace / path).exists()
    except (OSError, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class PictureShelf:
    """Where images are kept. `why_not` says why the model can see none; empty when it can."""

    folder: Path
    why_not: Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Attached:
    """`parts` are texts for the model, `pictures` go beside them."""

    parts: tuple[str, ...]
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacher:
    """Reads what is mentioned as the `read` tool would, so that the rules of that tool hold here too."""

    workspace: Path
    gate: PersonGate
    emit: Callable[[Event], None]
    documents: McpDocuments | None = None
    pictures: PictureShelf | None = None

    async def attached(self, text: str, budget: int) -> Attached:
        """What the mentions of `text` stand for, fenced; in all about `budget` characters. Images are apart.

        What is missing, refused or too much becomes a notice. A person may be asked, see `PersonGate`.
        """
        mentions, missing = await asyncio.to_thread(mentions_in, text, self.workspace)
        documents = [word for word in missing if self.documents is not None and self.documents.names(word)]
        missing = [word for word in missing if word not in documents]
        if missing:
            named = ", ".join(f"@{word}" for word in missing[:_NAMED_AS_MISSING])
            more = ", …" if len(missing) > _NAMED_AS_MISSING else ""
            self._tell(f"no file or folder of that name, sent as it is: {named}{more}", "info")
        parts: list[str] = []
        pictures: list[Picture] = []
        for mention in mentions:
            if self.pictures is not None and looks_like_picture(Path(mention.path)):
                pictures += await self._picture(mention, self.pictures)
                continue
            if budget < _LEAST_CHARACTERS:
                self._tell(f"@{mention.path} is not attached: the context has no room for it")
                continue
            content = await self._content(mention)
            if content is None:
                continue
            part = self._fenced(mention, _shortened(content, budget))
            budget -= len(part)
            parts.append(part)
        for word in documents[:MOST_MENTIONS]:
            part = await self._document(word, budget)
            budget -= len(part)
            parts += [part] if part else []
        return Attached(tuple(parts), tuple(pictures))

    async def _picture(self, mention: Mention, shelf: PictureShelf) -> list[Picture]:
        """The image, if the model can see it. It may lie anywhere: whoever names it wants it shown."""
        why = await shelf.why_not()
        if not why:
            path = self.workspace / mention.path
            kept = await asyncio.to_thread(keep_picture, path, path.name, shelf.folder)
            if isinstance(kept, Picture):
                return [kept]
            why = kept.why
        self._tell(f"@{mention.path} is not attached: {why}")
        return []

    async def _document(self, word: str, budget: int) -> str:
        """What a server shows, fenced; empty where it cannot be had. Whoever names it wants it read."""
        if self.documents is None or budget < _LEAST_CHARACTERS:
            self._tell(f"@{word} is not attached: the context has no room for it")
            return ""
        try:
            content = await self.documents.text(word)
        except AgentError as error:
            self._tell(f"@{word} is not attached: {error.message}")
            return ""
        return f"{word}, from an MCP server:\n{fenced(_shortened(content, budget))}"

    async def _content(self, mention: Mention) -> str | None:
        """The text of a file or the listing of a folder, None if it cannot be had."""
        path = await asyncio.to_thread((self.workspace / mention.path).resolve)
        if not path.is_relative_to(self.workspace):
            self._tell(f"@{mention.path} is not attached: it is outside of the workspace")
            return None
        tool = ReadTool()
        decision = await self.gate.decide(tool, {"path": mention.path})
        if not decision.allowed:
            self._tell(f"@{mention.path} is not attached: {decision.reason}")
            return None
        if await asyncio.to_thread(path.is_dir):
            return await asyncio.to_thread(_listing, path, self.workspace)
        params = ReadParams(path=mention.path, start=mention.first, lines=mention.lines)
        # Whoever names a file again wants it looked at again, so it is shown whole.
        result = await tool.run(params, replace(self.gate.context, is_in_view=lambda name, text: False))
        if result.is_error:
            self._tell(f"@{mention.path} is not attached: {result.model_text}")
            return None
        return result.model_text

    def _fenced(self, mention: Mention, content: str) -> str:
        last = content.rpartition("\n")[2]
        is_wanted_part = mention.lines is not None and last.startswith("(lines ")
        if last.startswith("(") and last not in _WHOLE and not is_wanted_part:
            self._tell(f"@{mention.path} is attached in part: {last.strip('()')}", "info")
        lines = f", lines {mention.first}-{mention.last or ''}" if mention.first else ""
        return f"{mention.path}{lines}:\n{fenced(content)}"

    def _tell(self, text: str, level: str = "warning") -> None:
        self.emit(Notice(text=text, level="info" if level == "info" else "warning"))


def _listing(folder: Path, workspace: Path) -> str:
    """The files below a folder that are not ignored."""
    names = sorted(list_repo_files(folder, _LISTED_FILES + 1) or ())
    if not names:
        # Outside of git the ignore files of the folders above count, so the walk begins at the top.
        start = "" if folder == workspace else f"{folder.relative_to(workspace).as_posix()}/"
        names = [name.removeprefix(start) for name in list_files(workspace) if name.startswith(start)]
    if not names:
        return "(no files)"
    more = f"\n(more than these {_LISTED_FILES} files)" if len(names) > _LISTED_FILES else ""
    return "\n".join(names[:_LISTED_FILES]) + more


def _shortened(content: str, most: int) -> str:
    """As many lines from the beginning as fit, and how to go on."""
    if len(content) <= most:
        return content
    kept = list(_fitting(content.split("\n"), most - _LEAST_CHARACTERS // 2))
    number = kept[-1].partition("\t")[0] if kept else ""
    more = (
        f"read the rest with start={int(number) + 1}" if number.isdecimal() else "the rest has no room here"
    )
    return "\n".join([*kept, f"({more})"])


def _fitting(lines: Sequence[str], most: int) -> Iterator[str]:
    for line in lines:
        most -= len(line) + 1
        if most < 0:
            return
        yield line
