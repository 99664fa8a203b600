"""Whether git, asked only to read in a folder, may start a program that the settings of the repository name.

No git runs here. What cannot be read counts as naming one.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from agent.core.regular_file import read_regular
from agent.permissions.git_index import NAMES_ARE_WHOLE

_HEAD = re.compile(r'\[\s*([^\]"\s]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]\s*')
_KEY = re.compile(r"([a-z][a-z0-9-]*)\s*(?:=\s*(.*))?$", re.IGNORECASE | re.DOTALL)
_SWITCH = frozenset({"", "true", "false", "yes", "no", "on", "off", "0", "1"})
_OF_FILTERS = frozenset({"clean", "smudge", "process"})
_OF_DIFFS = frozenset({"command", "textconv"})
_OF_PARTIAL_CLONES = frozenset(
    {"uploadpack", "sshcommand", "gitproxy", "askpass", "vcs", "helper", "insteadof"}
)
_KNOWN_FILTER = re.compile(r"git-lfs (clean|smudge|filter-process)( (--|%f))*")
_REMERGES = frozenset({"remerge", "r"})
_LARGEST_BYTES = 1_000_000
_LARGEST_INDEX_BYTES = 64 * 1024 * 1024
_MOST_REPOSITORIES = 200
# gitformat-index(5): the mode of a submodule, and how far behind it the name begins, by the kind of hash
_LINK = (0o160000).to_bytes(4, "big")
_FROM_MODE_TO_NAME = (16 + 20 + 2, 16 + 32 + 2)
_LONGER_FLAGS = 2


def repository_of(folder: Path, root: Path) -> Path | None:
    """The folder of git's own that git finds from a real path; None where it finds none.

    One that only looks like a bare repository counts as one, from `folder` up to `root`.
    """
    below = True
    for place in (folder, *folder.parents):
        if os.path.lexists(place / ".git"):
            return place / ".git"
        if below and os.path.lexists(place / "HEAD"):
            return place
        below = below and place != root
    return None


def program_named_by(git_folder: Path) -> str:
    """The setting, or the file, by which git may start a program when it only reads; empty where none is.

    A git that shows the state or the differences of a repository starts another in each of its submodules.

    Args:
        git_folder: a `.git` folder, or a `.git` file that names one.
    """
    places = [git_folder]
    for number, place in enumerate(places):  # it grows
        if number >= _MOST_REPOSITORIES:
            return "one of too many submodules"
        found = _named_by_one(place)
        if found:
            return found if not number else f"{found} of the submodule {place.parent.name}"
        try:
            places += (each for each in _submodules(place) if each not in places)
        except (OSError, ValueError):
            return "what cannot be read"
    return ""


def _submodules(git_folder: Path) -> Iterator[Path]:
    """The `.git` of submodules that are there, and of what only looks like one in the bytes of the index."""
    try:
        data = read_regular(_followed(git_folder) / "index", _LARGEST_INDEX_BYTES)
    except FileNotFoundError:
        return
    at = data.find(_LINK)
    if at >= 0 and int.from_bytes(data[4:8], "big") not in NAMES_ARE_WHOLE:
        raise ValueError("the index shortens the names of submodules")
    names: set[bytes] = set()
    while at >= 0:
        for distance in _FROM_MODE_TO_NAME:
            for start in (at + distance, at + distance + _LONGER_FLAGS):
                names.add(data[start : max(data.find(b"\0", start), start)])
        at = data.find(_LINK, at + 1)
    for name in sorted(names - {b""}):
        place = git_folder.parent / os.fsdecode(name) / ".git"
        if os.path.lexists(place):
            yield place


def _named_by_one(git_folder: Path) -> str:
    try:
        own = _followed(git_folder)
        common = _common(own)
        if _is_program(common / "hooks" / "post-index-change"):
            return "hooks/post-index-change"
        settings = [setting for file in _files(own, common) for setting in _settings(_text_of(file))]
    except (OSError, ValueError):
        return "what cannot be read"
    partial = any(key in ("promisor", "partialclone") for _, key, _ in settings)
    merges = any(
        (section, key) == ("log", "diffmerges") and value in _REMERGES for section, key, value in settings
    )
    named = (
        f"{section}.{key}"
        for section, key, value in settings
        if _starts(section, key, value, partial) or (merges and (section, key) == ("merge", "driver"))
    )
    hooks = (value for section, key, value in settings if (section, key) == ("core", "hookspath"))
    found = next(named, "")
    if not found and any(_is_program(common.parent / hook / "post-index-change") for hook in hooks):
        return "core.hookspath"
    return found


def _starts(section: str, key: str, value: str, partial: bool) -> bool:
    """Whether a setting has git start a program when it shows a state, a history or a difference."""
    if section in ("include", "includeif"):
        return True
    if section == "filter" and key in _OF_FILTERS:
        return _KNOWN_FILTER.fullmatch(value) is None
    if section == "diff" and key in (*_OF_DIFFS, "external"):
        return True
    if partial and (key in _OF_PARTIAL_CLONES or (key == "url" and "::" in value)):
        return True
    if section == "gpg" and key == "program":  # a format with %G? asks it, which may be a setting too
        return True
    if section == "log" and key == "showsignature":
        return value.lower() not in ("false", "no", "off", "0")
    return (section, key) == ("core", "fsmonitor") and value.lower() not in _SWITCH


def _is_program(file: Path) -> bool:
    return file.is_file() and os.access(file, os.X_OK)


def _files(own: Path, common: Path) -> Iterator[Path]:
    names = (common / "config", common / "config.worktree", own / "config.worktree")
    return (file for file in dict.fromkeys(names) if os.path.lexists(file))


def _followed(git_folder: Path) -> Path:
    if git_folder.is_dir():
        return git_folder
    kind, _, target = _text_of(git_folder).partition(":")
    if kind.strip() != "gitdir":
        raise ValueError(f"{git_folder} names no folder")
    return git_folder.parent / target.strip()


def _common(own: Path) -> Path:
    note = own / "commondir"
    return own / _text_of(note).strip() if note.is_file() else own


def _text_of(file: Path) -> str:
    """Raises OSError: it cannot be read, is no regular file, or too long for settings."""
    return read_regular(file, _LARGEST_BYTES).decode("utf-8", "surrogateescape")


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Sections without their names, keys and values, see git-config(1). Raises ValueError."""
    section = ""
    for line in _lines(text):
        rest = line.strip().removeprefix("\ufeff")
        while (head := _HEAD.match(rest)) is not None:
            section, rest = head[1].partition(".")[0].lower(), rest[head.end() :]
        if not rest or rest[0] in "#;":
            continue
        found = _KEY.match(rest)
        if found is None:
            raise ValueError(f"{rest} is no setting")
        yield section, found[1].lower(), _value(found[2] or "")


def _lines(text: str) -> Iterator[str]:
    """The lines as git ends them: a backslash before the line feed joins two, but not in a comment."""
    parts: list[str] = []
    quoted = False
    for line in text.replace("\r\n", "\n").split("\n"):
        commented, escaped = False, False
        for letter in line:
            if letter in "#;" and not quoted:
                commented = True
                break
            quoted ^= letter == '"' and not escaped
            escaped = letter == "\\" and not escaped
        if escaped and not commented:
            parts.append(line[:-1])
            continue
        yield "".join([*parts, line])
        parts, quoted = [], False
    yield "".join(parts)


def _value(text: str) -> str:
    """As plain as it has to be to tell known values: a comment or odd quoting makes it an unknown one."""
    text = text.strip()
    plain = len(text) > 1 and text[0] == text[-1] == '"' and not {'"', "\\"} & set(text[1:-1])
    return text[1:-1] if plain else text


def folder_of_call(words: Sequence[str | None], start: Path) -> Path:
    """Where `git -C A -C B` looks, when it is started in `start`. Names of folders are followed."""
    folder = start
    for before, word in pairwise(words):
        if before == "-C":
            folder = folder / (word or ".")
    return Path(os.path.realpath(folder))
