"""Commands that print what is in the files of a folder: which folders, and what they leave out."""

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.permissions.options import NotUnderstoodError, Options, Parsed, options, parse
from agent.permissions.readonly_git import GIT_COMMANDS
from agent.permissions.readonly_tables import GREP, READING_FILES, RG
from agent.permissions.words import Script, Word, names

Words = Sequence[Word]
Skips = Callable[[str, str], bool]

_GREP = replace(
    GREP,
    flags=GREP.flags + "R",
    values=GREP.values + "f",
    long_flags=GREP.long_flags | {"dereference-recursive"},
    long_values=GREP.long_values | {"file", "exclude-from"},
)
_DIFF = replace(
    READING_FILES["diff"],
    flags=READING_FILES["diff"].flags + "r",
    values=READING_FILES["diff"].values + "x",
    long_flags=READING_FILES["diff"].long_flags | {"recursive"},
)
_GIT_GLOBAL = options("pP", "Cc", "no-pager no-optional-locks literal-pathspecs no-replace-objects")
_ONLY_NAMES = names("stat name-only name-status numstat shortstat summary no-patch raw quiet s dirstat")
_WITH_TEXT = names("p u U unified binary patch patch-with-raw patch-with-stat c cc L")
_SHOWS_TEXT = names("diff show archive format-patch diff-tree")
_LOGS = names("log whatchanged")
_TYPES = {
    "c": "c h", "cpp": "cpp cc cxx hpp hh hxx h", "css": "css scss", "go": "go", "html": "html htm",
    "java": "java", "js": "js jsx mjs cjs vue", "kotlin": "kt kts", "md": "md markdown mdx", "php": "php",
    "markdown": "md markdown mdx", "py": "py pyi", "ruby": "rb", "rust": "rs", "sh": "sh bash", "sql": "sql",
    "swift": "swift", "ts": "ts tsx cts mts", "typescript": "ts tsx cts mts",
}  # fmt: skip


def _nothing(below: str, name: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRead:
    """What one command reads as a whole.

    Attributes:
        roots: as they are written; what is no folder there is not meant. Without any, it is where the
            command runs, or with `of_repository` all of the workspace.
        skips: whether a file is left out, by its name below the root and by that below the folder that the
            command runs in.
        way_out: how to leave a name out, as an option with `{}` for it.
        way_around: the same for a folder, where that is another option.
        by_path: whether that name is a path, from the folder that the command runs in.
        minds_ignored: files that `.gitignore` names are not read.
        minds_index: only what git's index has is read.
        skips_hidden: names that begin with a dot are not read.
        minds_secrets: whether the built-in names of secrets count.
    """

    program: str
    roots: tuple[str, ...] = ()
    skips: Skips = _nothing
    way_out: str = ""
    way_around: str = ""
    by_path: bool = False
    minds_ignored: bool = False
    minds_index: bool = False
    skips_hidden: bool = False
    of_repository: bool = False
    minds_secrets: bool = True


def folder_read(words: Words) -> FolderRead | None:
    """What of a command's folders it reads as a whole, None if it reads single files or only names."""
    name = (words[0].literal or "").rsplit("/", 1)[-1]
    reader = _READERS.get(name)
    if reader is not None:
        return reader(words[1:])
    if name not in _TAKERS:
        return None
    operands = [word for word in words[1:] if not (word.literal or "-").startswith("-")]
    if name in _HAVE_A_TARGET:
        operands = operands[:-1]
    if name in _SEARCH_HERE:
        return FolderRead(program=name, roots=_texts(operands[1:]))
    return FolderRead(program=name, roots=_texts(operands)) if operands else None


def reads_a_pipe(words: Words, script: Script) -> bool:
    """Whether ripgrep, which was given no folder, surely gets its text from the command before it."""
    uses = [command for command in script.commands if command.name == "rg"]
    piped = re.findall(r"(?<!\|)\|\s*rg\s", script.text)
    return (
        words[0].source == "rg"
        and len(uses) == len(piped) == len(re.findall(r"\brg\b", script.text))
        and all(command.parent is None for command in uses)
    )


def _texts(words: Words) -> tuple[str, ...]:
    return tuple(word.literal for word in words if word.literal is not None)


def _understood(arguments: Words, known: Options) -> Parsed | None:
    try:
        return parse(arguments, known)
    except NotUnderstoodError:
        return None


def _values(parsed: Parsed, *names_of_options: str) -> list[str]:
    return [word.literal or "" for name in names_of_options for word in parsed.given.get(name, [])]


def _operands(parsed: Parsed, *pattern_options: str) -> Words:
    return parsed.operands[0 if set(pattern_options) & parsed.given.keys() else 1 :]


def _loosely(program: str, arguments: Words, way_out: str) -> FolderRead:
    """Some option is not known, so every word may be a folder, and nothing is surely left out."""
    return FolderRead(program=program, roots=("", *_texts(arguments)), way_out=way_out)


def _grep(arguments: Words) -> FolderRead | None:
    way_out = "--exclude='{}'"
    parsed = _understood(arguments, _GREP)
    if parsed is None:
        recursive = any(
            re.fullmatch(r"-[A-Za-z]*[rR].*|--(dereference-)?recurs.*|--directories.*", word.literal or "")
            for word in arguments
        )
        return _loosely("grep", arguments, way_out) if recursive else None
    modes = _values(parsed, "d", "directories")
    if not parsed.given.keys() & {"r", "R", "recursive", "dereference-recursive"} and "recurse" not in modes:
        return None
    without, only = _values(parsed, "exclude"), _values(parsed, "include")
    folders = [name.rstrip("/") for name in _values(parsed, "exclude-dir")]

    def skips(below: str, name: str) -> bool:
        *above, last = below.split("/")
        if any(fnmatch.fnmatchcase(part, each) for part in above for each in folders):
            return True
        # of both the later one counts, so only what no `include` brings back is surely left out
        if any(fnmatch.fnmatchcase(last, each) for each in only):
            return False
        return any(fnmatch.fnmatchcase(last, each) for each in without) or bool(only and not without)

    roots = _texts(_operands(parsed, "e", "regexp", "f", "file"))
    way_around = "--exclude-dir='{}'"
    return FolderRead(program="grep", roots=roots, skips=skips, way_out=way_out, way_around=way_around)


def _rgrep(arguments: Words) -> FolderRead | None:
    return _grep((Word("-r", "-r"), *arguments))


def _rg(arguments: Words) -> FolderRead | None:
    way_out = "-g '!{}'"
    parsed = _understood(arguments, RG)
    if parsed is None:
        return _loosely("rg", arguments, way_out)
    given = parsed.given
    if given.keys() & {"files", "type-list", "version", "V"}:
        return None
    globs = _values(parsed, "g", "glob", "iglob")
    wanted = [each for each in globs if not each.startswith("!")]
    endings = {ending for kind in _values(parsed, "t", "type") for ending in _TYPES.get(kind, "").split()}
    all_types = any(kind not in _TYPES for kind in _values(parsed, "t", "type")) or not endings
    unrestricted = len(given.get("u", [])) + len(given.get("unrestricted", []))
    without = _ignore_lines([each.removeprefix("!") for each in globs if each.startswith("!")])
    only = _ignore_lines(wanted)

    def skips(below: str, name: str) -> bool:
        if not all_types and name.rpartition(".")[2] not in endings:
            return True
        if wanted and only(name):
            return False
        return bool(wanted) or without(name)

    return FolderRead(
        program="rg",
        roots=_texts(_operands(parsed, "e", "regexp")),
        skips=skips,
        way_out=way_out,
        by_path=True,
        minds_ignored=not (wanted or unrestricted or given.keys() & {"no-ignore", "no-ignore-vcs"}),
        skips_hidden=not (wanted or unrestricted > 1 or given.keys() & {"hidden", "."}),
    )


def _ignore_lines(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether one of the patterns, written as in `.gitignore`, fits a name."""
    if not patterns:
        return lambda name: False
    from pathspec import GitIgnoreSpec  # takes a while to load, and few lines need it

    spec = GitIgnoreSpec.from_lines(patterns)
    return lambda name: not name.startswith("../") and spec.match_file(name)


def _diff(arguments: Words) -> FolderRead | None:
    way_out = "--exclude='{}'"
    parsed = _understood(arguments, _DIFF)
    if parsed is None:
        recursive = any(re.fullmatch(r"-[A-Za-z]*r.*|--recurs.*", word.literal or "") for word in arguments)
        return _loosely("diff", arguments, way_out) if recursive else None
    if not parsed.given.keys() & {"r", "recursive"} or parsed.given.keys() & {"q", "brief"}:
        return None
    without = _values(parsed, "x", "exclude")

    def skips(below: str, name: str) -> bool:
        return any(fnmatch.fnmatchcase(part, each) for part in below.split("/") for each in without)

    return FolderRead(program="diff", roots=_texts(parsed.operands), skips=skips, way_out=way_out)


def _git(arguments: Words) -> FolderRead | None:
    try:
        before = parse(arguments, _GIT_GLOBAL, stop_at_operand=True)
    except NotUnderstoodError:
        return FolderRead(program="git", of_repository=True, minds_secrets=False)
    if not before.operands:
        return None
    name, rest = before.operands[0].literal or "", before.operands[1:]
    if name == "stash":
        shows = "show" in _texts(rest[:1]) and bool({"-p", "--patch"} & set(_texts(rest)))
        return (
            FolderRead(program="git stash show", of_repository=True, minds_secrets=False) if shows else None
        )
    known = GIT_COMMANDS.get(name)
    parsed = _understood(rest, known) if known is not None else None
    if not _shows_text(name, parsed, rest):
        return None
    folder = "/".join(_values(before, "C"))
    operands = _texts(rest if parsed is None else parsed.operands)
    if name == "grep" and not (parsed is not None and "e" in parsed.given):
        operands = operands[1:]
    if name == "cat-file" and len(operands) > 1:
        operands = operands[1:]  # the kind of object
    without = [match[1] for text in operands if (match := re.fullmatch(r":(?:!|\^|\(exclude\))(.+)", text))]
    named = [text for text in operands if not text.startswith(":")]
    if name != "grep" and named and all(":" in text for text in named):
        return None  # single files of a revision
    wild = [text for text in named if re.search(r"[*?\[]", text)]

    def skips(below: str, name: str) -> bool:
        if any(_fits(name, each) for each in without):
            return True
        return bool(wild) and len(wild) == len(named) and not any(_fits(name, each) for each in wild)

    return FolderRead(
        program=f"git {name}",
        roots=tuple(f"{folder}/{text}" if folder else text for text in named if text not in wild)
        or ((folder,) if folder else ()),
        skips=skips,
        way_out="':!{}'",
        by_path=True,
        minds_index=name in {"grep", "diff"} and parsed is not None and "untracked" not in parsed.given,
        of_repository=name != "grep",
        minds_secrets=name == "grep",
    )


def _shows_text(name: str, parsed: Parsed | None, rest: Words) -> bool:
    """Whether a git command prints what is in files, and not only their names."""
    if name == "grep":
        return True
    if parsed is None:
        return name in _SHOWS_TEXT or (name in _LOGS and any(text.startswith("-") for text in _texts(rest)))
    given = parsed.given.keys()
    if name == "cat-file" and len(parsed.operands) > 1:
        return True
    return bool(given & _WITH_TEXT) or (name in _SHOWS_TEXT and not given & _ONLY_NAMES)


def _fits(name: str, pathspec: str) -> bool:
    spec = pathspec.removeprefix("./").rstrip("/")
    return name == spec or name.startswith(f"{spec}/") or fnmatch.fnmatchcase(name, spec)


_READERS: dict[str, Callable[[Words], FolderRead | None]] = {
    "diff": _diff,
    "git": _git,
    "rg": _rg,
    "rgrep": _rgrep,
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep"), _grep),
}
_TAKERS = names("ack ag cp ln mv rsync scp tar zip 7z 7za")
_HAVE_A_TARGET = names("cp ln mv rsync scp")
_SEARCH_HERE = names("ack ag")
