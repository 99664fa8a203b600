"""Matching lines in files: ripgrep where it is installed, a Python process elsewhere.

Both print `name NUL line : column : text` and are read, and stopped, in the same way.
"""

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.waiting_pipes import nobody_waits_for_pipes
from tools._find import worker
from tools._find.listing import in_repository, list_files
from tools._process.lines import HelperOutcome, read_lines
from tools._text.paths import SKIPPED_FOLDERS

LONGEST_LINE_BYTES = 4000
_BOUNDED = 'ulimit -v 2097152 2>/dev/null; exec "$@"'
"""At most 2 GiB: ripgrep reads ignore files whole, and one may be a link to a device without end."""


class PatternError(Exception):
    """The regular expression is not valid."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One matching line; `column` is the position of the match in `text`, in bytes from 0."""

    name: str
    line: int
    column: int
    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What to look through.

    Args:
        folder: names are relative to it.
        name: the only file in `folder` to search; `None` for all of them.
        accepts: whether a file with this name is wanted.
        most_per_file: matches after which a file is left.
        seconds: time after which the search ends with what it has.
    """

    folder: Path
    name: str | None
    accepts: Callable[[str], bool]
    environment: Mapping[str, str]
    most_per_file: int
    seconds: float

    async def run(self, pattern: str, literal: bool, on_hit: Callable[[Hit], bool]) -> HelperOutcome:
        """Hands over matches, ordered by name and line, until `on_hit` returns false.

        Raises:
            PatternError: neither ripgrep nor Python understands the regular expression.
            OSError: the search cannot be started.
        """
        ripgrep = shutil.which("rg", path=self.environment.get("PATH"))
        if ripgrep:
            outcome = await self._start(self._ripgrep(ripgrep, pattern, literal), on_hit)
            failed = outcome.returncode == 2 and outcome.errors
            if not failed and outcome.returncode in (None, 0, 1, 2):
                return outcome
        if not literal:
            _check(pattern)
        return await self._start(self._worker(), on_hit, await self._worker_input(pattern, literal))

    def _ripgrep(self, program: str, pattern: str, literal: bool) -> list[str]:
        arguments = ["/bin/sh", "-c", _BOUNDED, "sh", program]
        arguments += ["--no-config", "--no-messages", "--no-ignore-dot", "--hidden", "--sort=path"]
        arguments += ["--line-number", "--column", "--with-filename", "--null", "--no-heading"]
        arguments += ["--color=never", f"--max-columns={LONGEST_LINE_BYTES}", "--max-columns-preview"]
        arguments += [f"--max-count={self.most_per_file}"]
        arguments += [f"--glob=!**/{name}/" for name in sorted(SKIPPED_FOLDERS)]
        if not in_repository(self.folder):
            # Outside a repository ignore files count too, but not those of somebody's home folder.
            arguments += ["--no-require-git", "--no-ignore-parent"]
        arguments += ["--fixed-strings"] if literal else ["--engine=auto"]
        return [*arguments, f"--regexp={pattern}", "--", f"./{self.name}" if self.name else "./"]

    def _worker(self) -> list[str]:
        return [sys.executable, "-I", "-S", worker.__file__]

    async def _worker_input(self, pattern: str, literal: bool) -> bytes:
        if self.name:
            names = [self.name]
        else:
            listed = await list_files(self.folder, self.environment)
            names = [name for name in listed if self.accepts(name) and not (self.folder / name).is_symlink()]
        fields = [pattern, "text" if literal else "regex", str(self.most_per_file), *names]
        return "\0".join(fields).encode("utf-8", "surrogateescape")

    async def _start(
        self, arguments: Sequence[str], on_hit: Callable[[Hit], bool], given: bytes = b""
    ) -> HelperOutcome:
        def on_line(line: bytes) -> bool:
            hit = _parsed(line)
            return hit is None or not self.accepts(hit.name) or on_hit(hit)

        with nobody_waits_for_pipes(self.folder):
            return await read_lines(arguments, self.folder, self.environment, self.seconds, on_line, given)


def _check(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise PatternError(str(error)) from None


def _parsed(line: bytes) -> Hit | None:
    name, found, rest = line.partition(b"\0")
    number, _, rest = rest.partition(b":")
    column, _, text = rest.partition(b":")
    if not found or not number.isdigit() or not column.isdigit():
        return None  # ripgrep's remark about a binary file
    shown = name.removeprefix(b"./").decode("utf-8", "surrogateescape")
    return Hit(shown, int(number), int(column) - 1, text)
