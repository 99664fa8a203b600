"""What is being typed at the cursor that a menu can complete."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

_MENTION = re.compile(r"(?:^|(?<=[\s(]))@(\"[^\"\n]*|[^\s\"]*)$")
_COMMAND = re.compile(r"/([A-Za-z][\w:-]*|)$")


@dataclass(frozen=True, slots=True)
class Completable:
    """The part of the text before the cursor that would be replaced: `length` characters."""

    kind: Literal["command", "file"]
    query: str
    length: int


def completable(before_cursor: str) -> Completable | None:
    """What stands before the cursor: a command at the very beginning, or a file after an `@`."""
    if match := _COMMAND.fullmatch(before_cursor):
        return Completable("command", match[1], len(match[0]))
    line = before_cursor.rpartition("\n")[2]
    match = _MENTION.search(line)
    if match is None:
        return None
    query = match[1].removeprefix('"')
    if re.search(r":\d+(?:-\d*)?$", query):  # the file is chosen, its lines are being typed
        return None
    return Completable("file", query, len(match[0]))


def mention(path: str) -> str:
    """How a file or folder is written in a message."""
    if any(character.isspace() or character == '"' for character in path):
        return f'@"{path}"'
    return f"@{path}"


def with_folders(files: Iterable[str]) -> list[str]:
    """`files` and the folders above them, folders with a slash at the end."""
    folders: dict[str, None] = {}
    listed = list(files)
    for name in listed:
        folder = name.rpartition("/")[0]
        while folder and f"{folder}/" not in folders:
            folders[f"{folder}/"] = None
            folder = folder.rpartition("/")[0]
    return [*sorted(folders), *listed]
