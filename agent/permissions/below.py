"""Rules and secrets against commands that read whole folders: is there a file below that they are about?"""

import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agent.permissions.context import Circumstances, Finding, from_rule
from agent.permissions.folder_reads import FolderRead
from agent.permissions.git_index import GitIndex, read_index
from agent.permissions.paths import Place, is_secret_part, is_within, locate
from agent.permissions.patterns import PathPattern
from agent.permissions.rules import Rule
from agent.permissions.walk import INSTALLED, Walk, is_ignored

_MOST_NAMED = 8


@dataclass(slots=True)
class Below:
    """One command's reading of folders, started in `folder`. All of it looks at a bounded number of files."""

    read: FolderRead
    folder: Path
    around: Circumstances
    walk: Walk = field(default_factory=Walk)
    _index: GitIndex | None = None

    def by_rules(self) -> Iterator[Finding]:
        """An objection for each deny or ask rule that is about a file that is read, or may be."""
        for rule in self.around.rules.about_files("read"):
            found = next((finding for root in self._roots() for finding in self._by_rule(rule, root)), None)
            if found is not None:
                yield found

    def by_secrets(self) -> Iterator[Finding]:
        """One objection, if a file is read that usually holds keys or passwords."""
        if not self.read.minds_secrets:
            return
        named: dict[str, str] = {}
        for root in self._roots():
            for path in self._secrets(root):
                named.setdefault(self._name_to_leave_out(path), self._shown(path))
                if len(named) == _MOST_NAMED:
                    break
        if named:
            first = next(iter(named.values()))
            reason = f"{self.read.program} also reads {first}, which looks like a file with secrets"
            yield Finding("ask", f"{reason}{self._way_out(named)}", suggestion="shell")

    def _roots(self) -> Iterator[str]:
        """The real folders that are read."""
        if self.read.roots:
            places = [self.around.locate(text or ".", self.folder).real for text in self.read.roots]
            found = [place for place in dict.fromkeys(places) if Path(place).is_dir()]
            if found or not self.read.of_repository:
                yield from found
                return
        start = self.around.workspace if self.read.of_repository else self.folder
        yield os.path.realpath(start)

    def _by_rule(self, rule: Rule, root: str) -> Iterator[Finding]:
        if rule.path is None:
            yield self._uncertain(rule, f"{self.read.program} reads all files below {self._shown(root)}")
            return
        start = os.path.realpath(rule.path.start(self.around.workspace))
        if not is_within(root, start) and not is_within(start, root):
            return
        begin = root if is_within(root, start) else start
        if Path(begin).is_file():
            paths: Iterator[tuple[str, bool]] = iter([(begin, False)])
        else:
            paths = ((entry.path, entry.is_symlink()) for entry in self.walk.files(begin))
        for path, is_link in paths:
            # of the two questions this is the quick one, and there may be thousands of files
            touched = rule.path.touches(self._place(path, is_link=is_link), self.around.workspace)
            if touched and not self._is_left_out(path, root):
                what = f"{self.read.program} also reads {self._shown(path)}"
                yield self._uncertain(rule, what + self._way_around(rule.path, root, path))
                return
        if self.walk.is_cut:
            yield self._uncertain(rule, f"{self._shown(root)} has too many files to look at each")

    def _uncertain(self, rule: Rule, why: str) -> Finding:
        doubt = from_rule(rule, uncertain=True)
        return Finding("ask", f"{doubt.reason}: {why}", rule)

    def _way_around(self, pattern: PathPattern, root: str, path: str) -> str:
        """What leaves out all files of a rule, if there is one option that does; else the file."""
        start = os.path.realpath(pattern.start(self.around.workspace))
        if "/" not in pattern.text:
            return self._way_out((pattern.text,))
        if self.read.way_out and pattern.is_whole and Path(start).is_dir() and not is_within(root, start):
            option = self.read.way_around or self.read.way_out
            return f"; leave it out with {option.format(self._name_to_leave_out(start))}"
        return self._way_out((self._name_to_leave_out(path),))

    def _secrets(self, root: str) -> Iterator[str]:
        workspace = os.path.realpath(self.around.workspace)
        if not is_within(root, workspace):
            return
        for entry in self.walk.files(root, INSTALLED):
            if entry.is_symlink() or not any(
                is_secret_part(part) for part in os.path.relpath(entry.path, workspace).split("/")
            ):
                continue
            if self._is_left_out(entry.path, root):
                continue
            if self.read.minds_ignored and is_ignored(Path(entry.path), Path(workspace)):
                continue
            yield entry.path

    def _is_left_out(self, path: str, root: str) -> bool:
        below = os.path.relpath(path, root)
        if self.read.skips_hidden and any(part.startswith(".") for part in below.split("/")):
            return True
        if self.read.skips(below, self._shown_from_here(path)):
            return True
        return self.read.minds_index and not self._is_tracked(path)

    def _is_tracked(self, path: str) -> bool:
        if self._index is None:
            self._index = read_index(Path(os.path.realpath(self.folder)))
        return self._index.may_have(path)

    def _place(self, path: str, *, is_link: bool) -> Place:
        if is_link:
            return locate(path, self.folder, self.around.workspace)
        return Place(path, path, path, inside=True, secret=False, protected=False)

    def _name_to_leave_out(self, path: str) -> str:
        return self._shown_from_here(path) if self.read.by_path else Path(path).name

    def _way_out(self, names: Iterable[str]) -> str:
        if not self.read.way_out:
            return "; name the files instead"
        return "; leave it out with " + " ".join(self.read.way_out.format(name) for name in names)

    def _shown_from_here(self, path: str) -> str:
        return os.path.relpath(path, os.path.realpath(self.folder))

    def _shown(self, path: str) -> str:
        root = os.path.realpath(self.around.workspace)
        return shlex.quote(os.path.relpath(path, root)) if is_within(path, root) else path
