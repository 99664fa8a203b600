"""Rules about files, held against the files that a command names.

A rule that allows a command says nothing about files: a deny or ask rule about one of them still holds.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.tool import Access
from agent.permissions.context import Circumstances, Finding, from_rule
from agent.permissions.expand import path_candidates
from agent.permissions.options import NotUnderstoodError
from agent.permissions.readonly_tables import READING_FILES
from agent.permissions.rules import Rule
from agent.permissions.runners import check_runner
from agent.permissions.words import SimpleCommand, Word, names

WRITERS = names("tee cp mv rm ln touch mkdir rmdir chmod chown install truncate sed patch rsync tar unzip")

_READERS = frozenset(READING_FILES) | names(
    "grep egrep fgrep rgrep rg ag ack find jq less more most bat zcat zless zgrep hexdump awk mawk man"
    " bash sh dash zsh ksh python python3 node ruby php lua pylint flake8 shellcheck"
)
"""They read what they are given, or run it; what that does is another matter."""
_TAKE_NO_FILES = names(
    ": [ [[ cd date declare echo exit export expr false kill local popd printf pushd read readonly return seq"
    " set shift sleep test tr true typeset unset wait"
)
_TAKE_PROGRAMS = names("awk ed ex gawk jq mawk node perl php python python3 ruby sed")
_PATH_LIKE = re.compile(r"[\w./~-]{1,200}")
_GIT_KEEPS_FILES = names("add branch commit fetch push remote stage tag")


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """`folders` are all those that commands of the line may run in."""

    around: Circumstances
    folders: Sequence[Path]

    def restricted(
        self,
        command: SimpleCommand,
        words: Sequence[Word],
        reading: Sequence[Word] | None,
        *,
        given: bool,
    ) -> list[Finding]:
        """The deny and ask rules about files that `command` names, which a rule allows.

        Args:
            words: the command's words with wildcards expanded.
            reading: the words that are paths, of a command that is known to only read.
            given: a person gave this very command, so what it names is known to be meant.
        """
        accesses = _accesses(words, reading, given=given)
        rules = [rule for access in accesses for rule in self.around.rules.about_files(access)]
        if not rules:
            return []
        findings = [
            finding
            for access in accesses
            for text in _texts(command, words, reading)
            for finding in self._about(text, access)
        ]
        if "/" in (words[0].literal or ""):
            findings += self._about(words[0].literal or "", "read")
        findings += self._in_program_text(command, words)
        if given:
            return findings
        unknown = bool(command.doubts) or _has_unknown(command, words, reading)
        doubted = next((rule for rule in rules if rule.covers_tool("read", "read") or _writes(words)), None)
        if unknown and doubted is not None:
            findings.append(from_rule(doubted, uncertain=True))
        return findings

    def _in_program_text(self, command: SimpleCommand, words: Sequence[Word]) -> Iterator[Finding]:
        """Files that stand in a short program, as in `sed '1r file'`. What it makes up itself is not seen."""
        if (words[0].literal or "").rsplit("/", 1)[-1] not in _TAKE_PROGRAMS:
            return
        for word in _own_words(command, words, None):
            for text in dict.fromkeys(_PATH_LIKE.findall(word.literal or "")):
                if any((folder / text).is_file() for folder in self.folders):
                    yield from self._about(text, "read")

    def _about(self, text: str, access: Access) -> Iterator[Finding]:
        for folder in self.folders:
            place = self.around.locate(text, folder)
            rule = self.around.rules.for_path(access, access, place, self.around.workspace)
            if rule is None or rule.verdict == "allow":
                continue
            if rule.path is not None or os.path.lexists(place.lexical):
                yield from_rule(rule)


def doubted_reading(around: Circumstances) -> Rule | None:
    """A rule about reading that may fit what is only known when a line runs."""
    return next(iter(around.rules.about_files("read")), None)


def _accesses(words: Sequence[Word], reading: object, *, given: bool) -> tuple[Access, ...]:
    if reading is not None or _only_reads(words):
        return ("read",)
    return ("read", "write") if _writes(words) or not given else ("read",)


def _only_reads(words: Sequence[Word]) -> bool:
    name = (words[0].literal or "").rsplit("/", 1)[-1]
    if name == "git":
        return any(word.literal in _GIT_KEEPS_FILES for word in words[1:3])
    if name in _READERS:
        return True
    try:
        check_runner(words)
    except NotUnderstoodError:
        return False
    return True


def _writes(words: Sequence[Word]) -> bool:
    return (words[0].literal or "").rsplit("/", 1)[-1] in WRITERS


def _own_words(
    command: SimpleCommand, words: Sequence[Word], reading: Sequence[Word] | None
) -> Sequence[Word]:
    """Those that are the command's own, not of one that it starts, which is judged for itself."""
    if reading is not None:
        return reading
    return words[1 : command.inner_at] if command.inner_at is not None else words[1:]


def _texts(command: SimpleCommand, words: Sequence[Word], reading: Sequence[Word] | None) -> Iterable[str]:
    own = [word for word in _own_words(command, words, reading) if not word.pipe and word.literal is not None]
    if reading is not None:
        return dict.fromkeys(word.literal or "" for word in own)
    return dict.fromkeys(text for word in own for text in path_candidates(word.literal or ""))


def _has_unknown(command: SimpleCommand, words: Sequence[Word], reading: Sequence[Word] | None) -> bool:
    if words[0].literal in _TAKE_NO_FILES:
        return False
    return words[0].literal is None or any(
        word.literal is None and not word.pipe for word in _own_words(command, words, reading)
    )
