"""The two pattern languages of permission rules: one for paths, one for commands."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path

from agent.core.name_class import either
from agent.permissions.paths import Place
from agent.permissions.words import Word

WILDCARDS = frozenset("*?[")
_BRACKETS = re.compile(r"\[[!^]?\]?[^]/]*\]")


class Match(Enum):
    YES = "yes"
    NO = "no"
    MAYBE = "maybe"  # depends on a word that only the shell knows


@dataclass(frozen=True, slots=True)
class PathPattern:
    """`text` as written in a rule: `docs/**`, `*.md` (any depth), `~/notes/**`, `/srv/data/*`."""

    text: str

    @property
    def names_files(self) -> bool:
        """Whether the last part says something about the file's name, instead of any name."""
        return bool(self.text.rstrip("/").rsplit("/", 1)[-1].strip("*?"))

    def allows(self, place: Place, workspace: Path) -> bool:
        """Whether the real file is surely one of the pattern's."""
        _, resolved = _path_regexes(self.text, str(workspace))
        return resolved.fullmatch(place.real) is not None

    def start(self, workspace: Path) -> Path:
        """The folder that all files of the pattern lie in, or the one file; links are not resolved."""
        return Path(_parts(self.text, str(workspace))[0])

    @property
    def is_whole(self) -> bool:
        """Whether it is one file, or all below one folder."""
        return "/" in self.text and not WILDCARDS & set(self.text.removesuffix("/").removesuffix("/**"))

    def touches(self, place: Place, workspace: Path) -> bool:
        """Whether the file could be meant, under any of its names and in any case.

        Who names a folder means what is in it: `private` is all below any folder of that name.
        """
        last = self.text.rstrip("/").rsplit("/", 1)[-1]
        below = "" if WILDCARDS & set(last) else "(?:/.*)?"
        return any(
            re.fullmatch(regex.pattern + below, path, re.IGNORECASE | re.DOTALL)
            for regex in _path_regexes(self.text, str(workspace))
            for path in (place.real, place.lexical)
        )


@lru_cache(maxsize=512)
def _path_regexes(pattern: str, workspace: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Regular expressions for the path as written and with the symbolic links of its fixed part resolved."""
    prefix, rest = _parts(pattern, workspace)
    written, resolved = (
        re.compile(re.escape(folder.rstrip("/")) + _glob_regex("/" + rest if rest else ""), re.DOTALL)
        for folder in (prefix, os.path.realpath(prefix))
    )
    return written, resolved


def _parts(pattern: str, workspace: str) -> tuple[str, str]:
    """The path before the first wildcard, and the pattern of what is below it."""
    if pattern.endswith("/"):
        pattern += "**"
    if pattern == "~" or pattern.startswith("~/"):
        pattern = str(Path.home()) + pattern[1:]
    base = "" if pattern.startswith("/") else workspace
    if base and "/" not in pattern:
        pattern = f"**/{pattern}"
    parts = pattern.strip("/").split("/")
    fixed = next((index for index, part in enumerate(parts) if WILDCARDS & set(part)), len(parts))
    return os.path.normpath("/".join((base, *parts[:fixed])) or "/"), "/".join(parts[fixed:])


def _glob_regex(pattern: str) -> str:
    regex, position = "", 0
    while position < len(pattern):
        rest = pattern[position:]
        if rest == "/**":
            return regex + "(?:/.*)?"
        if rest.startswith("/**/"):
            regex, position = regex + "/(?:.*/)?", position + 4
        elif rest.startswith("**"):
            regex, position = regex + ".*", position + 2
        elif group := _BRACKETS.match(rest):
            regex, position = regex + either(group.group()), position + group.end()
        else:
            regex += {"*": "[^/]*", "?": "[^/]"}.get(rest[0], re.escape(rest[0]))
            position += 1
    return regex


@dataclass(frozen=True, slots=True)
class WordPattern:
    source: str
    regex: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """Words that a command must begin with; `open_ended` (a last word `*`) lets any arguments follow."""

    words: tuple[WordPattern, ...]
    open_ended: bool

    def match(self, words: Sequence[Word]) -> Match:
        """Compares word by word. A word that is not known makes the rest uncertain, not equal."""
        for index, pattern in enumerate(self.words):
            if index >= len(words):
                return Match.NO
            word = words[index]
            if word.glob is not None and pattern.source == word.source:
                continue
            if word.literal is None:
                return Match.MAYBE
            if not pattern.regex.fullmatch(word.literal):
                return Match.NO
        if self.open_ended or len(words) == len(self.words):
            return Match.YES
        following = words[len(self.words) :]
        return Match.MAYBE if all(word.literal is None for word in following) else Match.NO


def parse_command_pattern(text: str) -> CommandPattern:
    """Reads the inside of `shell(...)`: words quoted as in a shell, where unquoted `*` and `?` are wildcards.

    Raises:
        ValueError: a quote is not closed.
    """
    words = _split_pattern(text)
    open_ended = bool(words) and words[-1].source in ("*", "**")
    return CommandPattern(tuple(words[:-1] if open_ended else words), open_ended)


def _split_pattern(text: str) -> list[WordPattern]:
    words: list[WordPattern] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        start, regex, quote = position, "", ""
        while position < len(text) and (quote or not text[position].isspace()):
            char = text[position]
            if quote:
                if char == quote:
                    quote = ""
                elif (
                    char == "\\"
                    and quote == '"'
                    and text[position + 1 : position + 2] in {'"', "\\", "$", "`"}
                ):
                    position += 1
                    regex += re.escape(text[position])
                else:
                    regex += re.escape(char)
            elif char in "'\"":
                quote = char
            elif char == "\\" and position + 1 < len(text):
                position += 1
                regex += re.escape(text[position])
            else:
                regex += {"*": ".*", "?": "."}.get(char, re.escape(char))
            position += 1
        if quote:
            raise ValueError(f"the quote {quote} is not closed")
        source = text[start:position]
        home = str(Path.home())
        if source == "~" or source.startswith("~/"):
            regex = re.escape(home) + regex[len(re.escape("~")) :]
        words.append(WordPattern(source, re.compile(regex, re.DOTALL)))
    return words
