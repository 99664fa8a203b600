"""Custom commands: prompts in Markdown files, with places for what is typed behind their name."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from agent.core.outside_text import decoded, one_line
from agent.skills.discover import folders_up
from agent.skills.matter import Document, MatterError, split
from agent.skills.parse import LARGEST_FILE_BYTES, Scope, usable_name
from agent.skills.printed import commands_in, in_place, pieces_of

PROJECT_FOLDERS = (".agent/commands", ".claude/commands")
MOST_COMMANDS = 500
_SEPARATOR = ":"
_PLACE = re.compile(r"\$(?:ARGUMENTS\b|([1-9])(?![\w]))")


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomCommand:
    """`name` is what is typed behind the slash; a folder is part of it, as in `db:migrate`.

    `content` are the bytes of `file` that `body` was made of, `trusted` says if they are the person's words.
    """

    name: str
    description: str
    takes: str
    file: Path
    scope: Scope
    body: str
    content: bytes = field(repr=False)
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class FoundCommands:
    """`commands` by name, see `find_commands`; `shadowed` have a name that another one has before them.

    `problems` are lines about files that cannot be used.
    """

    commands: tuple[CustomCommand, ...] = ()
    shadowed: tuple[CustomCommand, ...] = ()
    problems: tuple[str, ...] = field(default=())

    def get(self, name: str) -> CustomCommand | None:
        return next((command for command in self.commands if command.name == name), None)


def command_folders(workspace: Path, root: Path, personal: Sequence[Path]) -> list[tuple[Path, Scope]]:
    """Where commands may be, nearest first."""
    found: list[tuple[Path, Scope]] = [
        (folder / name, "project") for folder in folders_up(workspace, root) for name in PROJECT_FOLDERS
    ]
    return [*found, *((folder, "user") for folder in personal)]


def find_commands(
    folders: Iterable[tuple[Path, Scope]],
    is_trusted: Callable[[CustomCommand], bool] = lambda command: command.scope != "project",
) -> FoundCommands:
    """Loads all commands. Of several with one name the nearest trusted one counts, else the nearest.

    A clone could otherwise put its own words in the place of a prompt that the person knows. There may be
    `MOST_COMMANDS` of a project, and as many of the person. Reads files, so call it in a thread.
    """
    loaded: list[CustomCommand] = []
    problems: list[str] = []
    for folder, scope in folders:
        for file in _files(folder):
            if sum(one.scope == scope for one in loaded) >= MOST_COMMANDS:
                problems.append(f"{folder}: only the first {MOST_COMMANDS} commands are loaded")
                break
            try:
                command = _load(file, folder, scope)
            except (MatterError, OSError) as error:
                problems.append(f"the command {one_line(str(file), 200)} is left out: {error}")
                continue
            loaded.append(replace(command, trusted=is_trusted(command)))
    by_name: dict[str, CustomCommand] = {}
    for command in (*(one for one in loaded if one.trusted), *loaded):
        by_name.setdefault(command.name, command)
    chosen = {command.file for command in by_name.values()}
    shadowed = tuple(command for command in loaded if command.file not in chosen)
    return FoundCommands(tuple(by_name.values()), shadowed, tuple(problems))


def expand(body: str, arguments: str, outputs: Mapping[str, str] = MappingProxyType({})) -> str:
    """The prompt with `$ARGUMENTS` and `$1` to `$9` filled in.

    Arguments that have no place in it are added at the end. What is filled in is not looked at again.
    `outputs` are what `printed_in` commands printed.
    """
    fill = _Filling(arguments)
    pieces = [
        in_place(fill.quoted(piece.text), outputs) if piece.is_command else fill.plain(piece.text)
        for piece in pieces_of(body)
    ]
    text = "".join(pieces)
    if arguments.strip() and not fill.places:
        text = f"{text.rstrip()}\n\nArguments: {arguments.strip()}"
    return text.strip()


def printed_in(body: str, arguments: str) -> list[str]:
    """The commands whose output belongs into the prompt. An argument in one is one word for the shell."""
    fill = _Filling(arguments)
    return list(dict.fromkeys(fill.quoted(command) for command in commands_in(body)))


class _Filling:
    """Puts arguments into texts, and counts the places that it found for them."""

    def __init__(self, arguments: str) -> None:
        self.places = 0
        self._all = arguments.strip()
        self._words = _words(self._all)

    def plain(self, text: str) -> str:
        return self._filled(text, self._all, self._words)

    def quoted(self, command: str) -> str:
        words = [shlex.quote(word) for word in self._words]
        return self._filled(command, " ".join(words), words)

    def _filled(self, text: str, everything: str, words: Sequence[str]) -> str:
        def fill(found: re.Match[str]) -> str:
            if found[1] is None:
                return everything
            at = int(found[1]) - 1
            return words[at] if at < len(words) else ""

        filled, places = _PLACE.subn(fill, text)
        self.places += places
        return filled


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()


def _files(folder: Path) -> Iterator[Path]:
    try:
        inside = folder.resolve()
        files = sorted(path for path in folder.rglob("*.md") if path.is_file())
    except (OSError, RuntimeError):
        return
    for file in files:
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if not hidden and file.resolve().is_relative_to(inside):
            yield file


def _load(file: Path, folder: Path, scope: Scope) -> CustomCommand:
    content, document = _read(file)
    parts = [usable_name(part) for part in file.relative_to(folder).with_suffix("").parts]
    name = _SEPARATOR.join(filter(None, parts))
    if not name:
        raise MatterError("its name has no letter or digit")
    first = next((line.lstrip("# ") for line in document.body.split("\n") if line.strip()), "")
    matter = document.matter
    described = matter.get("description")
    takes = matter.get("argument-hint")
    if isinstance(takes, list):  # `argument-hint: [file]` is a list for YAML
        takes = " ".join(f"[{item}]" for item in takes if isinstance(item, str))
    return CustomCommand(
        name=name,
        description=one_line(described if isinstance(described, str) else first, 200),
        takes=one_line(takes, 80) if isinstance(takes, str) else "",
        file=file,
        scope=scope,
        body=document.body,
        content=content,
    )


def _read(file: Path) -> tuple[bytes, Document]:
    with file.open("rb") as stream:
        content = stream.read(LARGEST_FILE_BYTES + 1)
    text = decoded(content) if len(content) <= LARGEST_FILE_BYTES else None
    if text is None:
        raise MatterError("it is no text, or too big")
    document = split(text)
    if not document.body.strip():
        raise MatterError("there is nothing in it")
    return content, document
