"""The instructions that a project has for assistants: `AGENTS.md`, or `CLAUDE.md` where there is none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent.core.outside_text import decoded, fenced, one_line

NAMES = ("AGENTS.md", "CLAUDE.md")
LARGEST_FILE_BYTES = 32 * 1024
MOST_OTHERS = 12
LEAST_TOKENS, MOST_TOKENS, UNKNOWN_WINDOW_TOKENS = 500, 8000, 4000
_WINDOW_SHARE = 0.1
_CHARACTERS_PER_TOKEN = 3.5
_LEAST_CHARACTERS = 200
"""A file of which less would be left is left out."""


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """`name` is the path from the project's root, or an absolute one for the person's own file."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Instructions:
    """`files` from the farthest to the nearest; `others` are further ones below; `notices` are for people."""

    files: tuple[InstructionFile, ...] = ()
    others: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    def as_text(self) -> str:
        """All of it for the first message; empty where there is nothing."""
        if not self.files and not self.others:
            return ""
        parts = [f"{file.name}:\n{fenced(file.text)}" for file in self.files]
        if parts:
            parts.insert(0, f"{_HEADING} A later file counts more than an earlier one.")
        if self.others:
            listed = ", ".join(self.others)
            parts.append(f"Read these too before you change files in their folders: {listed}")
        return "\n\n".join(parts)


_HEADING = "Instructions for work in this repository; what the user asks for comes first."


def budget_for(context_tokens: int) -> int:
    """Characters that instructions may take of a context window; 0 tokens means that it is unknown."""
    share = int(context_tokens * _WINDOW_SHARE) if context_tokens > 0 else UNKNOWN_WINDOW_TOKENS
    return int(min(MOST_TOKENS, max(LEAST_TOKENS, share)) * _CHARACTERS_PER_TOKEN)


def find_instructions(
    workspace: Path,
    root: Path,
    *,
    budget: int,
    personal: Path | None = None,
    mentioned: Iterable[Path] = (),
    listing: Sequence[str] = (),
) -> Instructions:
    """Reads what there is from `root` down to `workspace`, and on to the folders of `mentioned` files.

    The nearest file gets its room first. Reads files, so call it in a thread.

    Args:
        budget: characters for all of them together.
        personal: the folder with the person's own `AGENTS.md`, which comes first.
        listing: files of the workspace; instructions among them that are not shown are named.
    """
    workspace, root = workspace.resolve(), root.resolve()
    root = root if workspace.is_relative_to(root) else workspace
    notices: list[str] = []
    found: dict[Path, InstructionFile] = {}
    if personal is not None:
        _add(personal, personal, found, notices, name=str(personal / NAMES[0]), names=NAMES[:1])
    for folder in _chain(workspace, root, mentioned):
        _add(folder, root, found, notices)
    kept = _fitted(list(found.values()), budget, notices)
    shown = {path for path, file in found.items() if any(one.name == file.name for one in kept)}
    others = [name for name in _others(listing) if (workspace / name).resolve() not in shown]
    if len(others) > MOST_OTHERS:
        others = [*others[:MOST_OTHERS], "..."]
    return Instructions(tuple(kept), tuple(one_line(name, 200) for name in others), tuple(notices))


def _chain(workspace: Path, root: Path, mentioned: Iterable[Path]) -> list[Path]:
    """Folders from the farthest to the nearest, each once."""
    folders: dict[Path, None] = {}
    for place in (workspace, *(path.resolve().parent for path in mentioned)):
        chain = [one for one in (place, *place.parents) if one.is_relative_to(root)]
        folders |= dict.fromkeys(reversed(chain))
    return list(folders)


def _add(
    folder: Path,
    root: Path,
    found: dict[Path, InstructionFile],
    notices: list[str],
    *,
    name: str = "",
    names: Sequence[str] = NAMES,
) -> None:
    for candidate in names:
        path = folder / candidate
        try:
            if not path.is_file():
                continue
            resolved = path.resolve()
            shown = name or (path.relative_to(root).as_posix() if path.is_relative_to(root) else candidate)
            if not name and not resolved.is_relative_to(root):
                notices.append(f"{one_line(shown, 200)} is a link out of the project and is left out")
                continue
            if resolved in found:
                return
            with path.open("rb") as stream:
                content = stream.read(LARGEST_FILE_BYTES + 1)
        except (OSError, RuntimeError) as error:
            notices.append(f"{one_line(str(path), 200)} cannot be read: {error}")
            continue
        text = decoded(content[:LARGEST_FILE_BYTES])
        if text is None:
            notices.append(f"{one_line(shown, 200)} is no text and is left out")
            continue
        if len(content) > LARGEST_FILE_BYTES:
            size = f"{LARGEST_FILE_BYTES // 1024} KiB"
            notices.append(f"{one_line(shown, 200)} is bigger than {size}: only its beginning is used")
        if text.strip():
            found[resolved] = InstructionFile(one_line(shown, 200), text.strip())
        return


def _fitted(files: list[InstructionFile], budget: int, notices: list[str]) -> list[InstructionFile]:
    kept: list[InstructionFile] = []
    for file in reversed(files):
        if len(file.text) <= budget:
            kept.insert(0, file)
            budget -= len(file.text)
        elif budget >= _LEAST_CHARACTERS:
            text = file.text[:budget].rpartition("\n")[0] or file.text[:budget]
            kept.insert(0, InstructionFile(file.name, f"{text}\n(the rest is left out: no room)"))
            notices.append(f"{file.name} is too long for this context window: only its beginning is used")
            budget = 0
        else:
            notices.append(f"{file.name} is left out: no room for it in this context window")
    return kept


def _others(listing: Sequence[str]) -> list[str]:
    """Instruction files among the names, `CLAUDE.md` only where its folder has no `AGENTS.md`."""
    names = [PurePosixPath(name) for name in listing if PurePosixPath(name).name in NAMES]
    have_agents = {path.parent for path in names if path.name == NAMES[0]}
    return [
        path.as_posix()
        for path in names
        if len(path.parts) > 1 and (path.name == NAMES[0] or path.parent not in have_agents)
    ]
