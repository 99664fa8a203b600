"""Which files there are, and which of them a text talks about.

Both functions may wait for a git process; call them from a worker thread where that matters.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agent.core.regular_file import read_regular
from agent.repo.git import list_repo_files

MOST_ENTRIES = 20_000
LARGEST_MENTIONED_BYTES = 64 * 1024
MOST_MENTIONED = 20

_MOST_CANDIDATES = 2_000
_IGNORE_FILE = ".gitignore"
_LARGEST_IGNORE_BYTES = 1_000_000

# Folders that are never work: other people's code, caches, version control.
SKIPPED_FOLDERS = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "node_modules",
        "__pycache__",
        ".venv",
        "venv",
        ".tox",
        ".mypy_cache",
        ".ruff_cache",
    }
)

_QUOTED = r"`([^`\n]+)`|\"([^\"\n]+)\"|'([^'\n]+)'"
_BARE = r"([^\s`\"'<>()\[\]{},;|*?!]+)"
_MENTION = re.compile(f"{_QUOTED}|{_BARE}")
_WORD = re.compile(_BARE)
_PLACE_IN_FILE = re.compile(r"(?::\d+(?:[:-]\d+)?|#L\d+(?:-L?\d+)?|::\S+)$")

Ignores = Callable[[str, bool], bool]
"""Whether a path (from the root, with `/`) is ignored; the second argument says that it is a folder."""


class FileNames:
    """The files below a folder, asked for once for several questions that follow on each other at once.

    `known` are the names of all of them, where they were found out just before.
    """

    def __init__(self, root: Path, known: Sequence[str] | None = None) -> None:
        self._root = root
        self._limit = 0 if known is None else MOST_ENTRIES
        self._names = list(known or ())

    def first(self, limit: int) -> list[str]:
        """Up to `limit` of them; some may be deleted, or submodules. May wait for a git process."""
        if limit > self._limit:
            self._names, self._limit = _names(self._root, limit), limit
        return self._names[:limit]


def list_files(root: Path, limit: int = MOST_ENTRIES, names: FileNames | None = None) -> list[str]:
    """Up to `limit` files below `root` that are not ignored, sorted, by their name from there with `/`.

    In a repository git decides, elsewhere the `.gitignore` files do. Links are listed, not followed. Looks
    at no more than 20 times `limit` entries.
    """
    found = (names or FileNames(root)).first(limit)
    start = str(root)
    return sorted(name for name in found if _is_listable(f"{start}/{name}"))


def find_mentioned_files(text: str, root: Path, names: FileNames | None = None) -> list[Path]:
    """Files below `root` that `text` names, in order of first mention, at most 20, as absolute paths.

    Understood are paths from `root`, absolute paths, the end of a path or a bare name where only one file
    has it, each with or without quotes, `@` in front, and a line number behind. A single word without a dot
    counts only in quotes or with a capital letter (`Makefile`). Left out: folders, binary files, files over
    64 KiB, and anything outside of `root`.
    """
    root = root.resolve()
    names = names or FileNames(root)
    by_end: dict[str, list[str]] | None = None
    found: dict[Path, None] = {}
    for candidate, quoted in _candidates(text):
        if not _looks_like_a_file(candidate, quoted=quoted):
            continue
        path = _direct(root, candidate)
        if path is None and not candidate.startswith(("/", "..", "~")):
            if by_end is None:
                by_end = _index_by_name(names.first(MOST_ENTRIES))
            path = _by_unique_end(root, candidate, by_end)
        if path is not None and path not in found and _is_readable_text(path):
            found[path] = None
            if len(found) == MOST_MENTIONED:
                break
    return list(found)


def _candidates(text: str) -> Iterator[tuple[str, bool]]:
    """What could be a path, in order, and whether it was in quotes; quoted text whole, then by word."""
    for number, match in enumerate(_MENTION.finditer(text)):
        if number == _MOST_CANDIDATES:
            return
        quoted = match[1] or match[2] or match[3]
        if quoted is None:
            yield _trimmed(match[4]), False
            continue
        yield _trimmed(quoted.strip()), True
        if " " in quoted.strip():
            yield from ((_trimmed(word[1]), False) for word in _WORD.finditer(quoted))


def _trimmed(word: str) -> str:
    word = word.removeprefix("@").rstrip(".,:;!?")
    word = _PLACE_IN_FILE.sub("", word)
    return word.removeprefix("./")


def _looks_like_a_file(word: str, *, quoted: bool) -> bool:
    if not word or len(word) > 500 or "://" in word or "\0" in word:
        return False
    return quoted or "/" in word.strip("/") or "." in word.strip(".") or word != word.lower()


def _direct(root: Path, candidate: str) -> Path | None:
    """The file at exactly this path, if it is inside of `root` and not in git's own folder."""
    try:
        path = root / candidate
        if not path.is_file():
            return None
        real = path.resolve()
    except (OSError, ValueError):
        return None
    inside = real.is_relative_to(root) and ".git" not in real.relative_to(root).parts
    return Path(os.path.normpath(path)) if inside else None


def _index_by_name(files: list[str]) -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    for file in files:
        index.setdefault(file.rpartition("/")[2], []).append(file)
    return index


def _by_unique_end(root: Path, candidate: str, by_name: dict[str, list[str]]) -> Path | None:
    same_name = by_name.get(candidate.rpartition("/")[2], [])
    matches = [file for file in same_name if file == candidate or file.endswith(f"/{candidate}")]
    return _direct(root, matches[0]) if len(matches) == 1 else None


def _is_readable_text(path: Path) -> bool:
    try:
        data = read_regular(path, LARGEST_MENTIONED_BYTES)
    except OSError:
        return False
    return b"\0" not in data and _decodes(data)


def _decodes(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _names(root: Path, limit: int) -> list[str]:
    """The files below `root`; some may be deleted, or submodules."""
    # An empty answer can also mean that a repository further up ignores this folder as a whole.
    return list_repo_files(root, limit) or _walk(root, limit)


def _is_listable(path: str) -> bool:
    # One question to the system, and no Path: this is asked for each of 100,000 files.
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _walk(root: Path, limit: int) -> list[str]:
    files: list[str] = []
    looked_at = 0
    waiting: list[tuple[str, tuple[Ignores, ...]]] = [("", ())]
    while waiting:
        folder, rules = waiting.pop()
        rules = (*rules, *_rules_in(root, folder))
        for entry in _entries(root / folder):
            looked_at += 1
            if len(files) >= limit or looked_at > limit * 20:
                return files
            name = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if any(ignores(name, is_folder) for ignores in rules):
                continue
            if not is_folder:
                files.append(name)
            elif entry.name not in SKIPPED_FOLDERS:
                waiting.append((name, rules))
    return files


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _rules_in(root: Path, folder: str) -> tuple[Ignores, ...]:
    """The rules of the ignore file in `folder`, if there is one."""
    try:
        data = read_regular(root / folder / _IGNORE_FILE, _LARGEST_IGNORE_BYTES)
        lines = data.decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(lines)
    start = len(folder) + 1 if folder else 0

    def ignores(name: str, is_folder: bool) -> bool:
        return spec.match_file(name[start:] + ("/" if is_folder else ""))

    return (ignores,)
