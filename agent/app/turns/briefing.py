"""Gathers what the first message of a task shows: the listing, the files that the task names, the check."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent.core.briefing import AttachedFile, first_message
from agent.core.regular_file import read_regular
from agent.core.verifier import Verdict
from agent.headless.task import Task
from agent.repo.files import FileNames, find_mentioned_files, list_files

# Shares of the context window. A small repository is shown whole where the task names no file.
_ATTACHED_SHARE = 0.35
_CHARACTERS_PER_TOKEN = 3
_UNKNOWN_WINDOW_CHARACTERS = 24_000
_SMALL_REPOSITORY_FILES = 12
_LISTED_FILES = 400
_DOCUMENT_SUFFIXES = (".md", ".rst", ".txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """What the first message was made of. `listing` are all files of the workspace, up to a limit."""

    listing: tuple[str, ...]
    mentioned: tuple[str, ...]
    files: tuple[AttachedFile, ...]

    def message(self, task: Task, baseline: Verdict | None) -> str:
        return first_message(task.text, files=self.files, listing=self.listing, baseline=baseline)


def gather(
    task: Task,
    workspace: Path,
    *,
    context_tokens: int,
    attach: bool,
    may_read: Callable[[Path], bool] = lambda path: True,
) -> Briefing:
    """Looks at the workspace. May start a git process, so call it in a thread.

    Args:
        may_read: whether the permissions let a file be read; what they do not is not shown.
    """
    names = FileNames(workspace)
    named = find_mentioned_files(task.text, workspace, names)
    shown = list(dict.fromkeys([*named, *find_mentioned_files(task.check or "", workspace, names)]))
    listing = list_files(workspace, _LISTED_FILES, names)  # last, as the others may have asked for more
    if all(is_reference(path.name) for path in shown) and len(listing) <= _SMALL_REPOSITORY_FILES:
        shown += [workspace / name for name in listing if not name.startswith(".")]
    budget = int(context_tokens * _ATTACHED_SHARE * _CHARACTERS_PER_TOKEN) or _UNKNOWN_WINDOW_CHARACTERS
    return Briefing(
        listing=tuple(listing),
        mentioned=tuple(path.relative_to(workspace).as_posix() for path in named),
        files=tuple(_attached(filter(may_read, dict.fromkeys(shown)), workspace, budget)) if attach else (),
    )


_FILE_NAME = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)*\.[A-Za-z]\w{0,8}(?![\w/])")


def new_files_in(text: str, workspace: Path) -> tuple[str, ...]:
    """Names of files that a task mentions and that are not there yet, in order of mention."""
    names = dict.fromkeys(found.rstrip(".") for found in _FILE_NAME.findall(text))
    return tuple(name for name in names if ".." not in name and not _exists(name, workspace))


def _exists(name: str, workspace: Path) -> bool:
    return (workspace / name).exists() or any(workspace.glob(f"*/{name}"))


def _attached(paths: Iterable[Path], workspace: Path, budget: int) -> Iterator[AttachedFile]:
    for path in paths:
        text = _text_of(path)
        if text is None or len(text) > budget:
            continue
        budget -= len(text)
        yield AttachedFile(path.relative_to(workspace).as_posix(), text, reference=is_reference(path.name))


def is_document(name: str) -> bool:
    return name.endswith(_DOCUMENT_SUFFIXES)


def is_reference(name: str) -> bool:
    """Tests and documents: what the model reads, but seldom changes."""
    stem = PurePosixPath(name).stem
    return is_document(name) or stem.startswith("test_") or stem.endswith("_test")


def _text_of(path: Path) -> str | None:
    try:
        return read_regular(path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
