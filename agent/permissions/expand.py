"""Wildcards and words that may be paths."""

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent.permissions.paths import locate
from agent.permissions.words import Word, plain_word

_MAX_NAMES = 500
_MAX_WILD_PARTS = 3  # looking through more levels could take long
_URL = re.compile(r"(https?|ssh|git|ftp)://.*")


def expand_globs(words: Sequence[Word], folders: Sequence[Path], workspace: Path) -> tuple[Word, ...]:
    """Replaces wildcards by the names that they find now, as the shell does.

    A word for which that cannot be told stays as it is.
    """
    expanded: list[Word] = []
    for word in words:
        if word.glob is None:
            expanded.append(word)
            continue
        names = _names(word, folders, workspace)
        expanded += (
            [Word(None, word.source, glob=word.glob)]
            if names is None
            else [plain_word(name) for name in names]
        )
    return tuple(expanded)


def _names(word: Word, folders: Sequence[Path], workspace: Path) -> list[str] | None:
    pattern = word.glob or ""
    parts = pattern.split("/")
    wild = sum(1 for part in parts if set(part) & set("*?["))
    if wild > _MAX_WILD_PARTS or ".." in parts or "[^" in pattern or "[:" in pattern or "\\" in pattern:
        return None
    fixed = re.split(r"[*?\[]", pattern, maxsplit=1)[0].rpartition("/")[0]
    names: list[str] = []
    for folder in folders:
        start = locate(fixed or ("/" if pattern.startswith("/") else "."), folder, workspace)
        if not start.inside:
            return None
        found = _find(folder, "", parts)
        names += found or [word.value or ""]
        if len(names) > _MAX_NAMES:
            return None
    return sorted(set(names))


def _find(folder: Path, found: str, parts: Sequence[str]) -> list[str]:
    """The paths below `folder / found` that match `parts`."""
    if not parts:
        return [found]
    part, rest = parts[0], parts[1:]
    prefix = f"{found}/" if found and not found.endswith("/") else found
    if not set(part) & set("*?["):
        path = prefix + part if part or not rest else prefix or "/"
        return _find(folder, path, rest) if rest or os.path.lexists(folder / path) else []
    names: list[str] = []
    for name in _names_in(folder / found):
        # older versions of bash find `.` and `..` by a pattern that begins with a dot
        if name.startswith(".") == part.startswith(".") and fnmatch.fnmatchcase(name, part):
            names += _find(folder, prefix + name, rest)
        if len(names) > _MAX_NAMES:
            break
    return names


def _names_in(folder: Path) -> list[str]:
    try:
        return [".", "..", *(path.name for path in folder.iterdir())]
    except OSError:
        return []


def path_candidates(text: str) -> Iterator[str]:
    """The parts of an argument that a program could take for a path: `x`, `--opt=x`, `-vox`, `a:x`, `@x`."""
    if _URL.fullmatch(text):
        return
    pieces = {text} if not text.startswith("-") else set()
    if "=" in text:
        pieces.add(text.partition("=")[2])
    letters = re.match(r"-([A-Za-z0-9]{1,4})", text)
    if letters is not None:
        pieces.update(text[end:] for end in range(2, letters.end() + 1))
    for piece in list(pieces):
        pieces.update(re.split(r"[:,=@]", piece))
    yield from sorted(piece for piece in pieces if piece)
