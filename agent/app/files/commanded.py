"""What a command of the model did to files, so that it can be undone like an edit.

A command says nothing about what it will change. So before one that may write, the state of the workspace
is noted: in a repository git has the content of clean tracked files, everything else that is not ignored is
held (`session.held`), and so are ignored files that may be somebody's work (`ignored`). After the command
what differs becomes the session's. Repositories inside of this one are looked at alike. Not covered are files
that are made again, those beyond the bounds, and repositories that a command makes; the person is told.
"""

import stat
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.app.files.ignored import IgnoredFiles, ignored_files, is_made_again
from agent.core.errors import AgentError
from agent.repo.trees import Tree, TreeFinder
from agent.repo.work_tree import TreeEntry, is_below, walk_keys
from agent.session.held import (
    MOST_FILES,
    USUAL_BOUNDS,
    Bounds,
    HeldFiles,
    Holding,
    Signature,
    signature_of,
)
from agent.session.ledger import SessionLedger
from agent.session.states import ABSENT, FileState, state_below

MOST_ADOPTED = 5_000
"""So many files that one command changed are kept; a command that changes more is not covered."""

_MOST_NAMED = 3


@dataclass(slots=True)
class Before:
    """The workspace before a command. `trees` are the repositories in it, its own first.

    `modes` are those of tracked files, as far as there are not too many; `gone` are tracked files that were
    deleted already, `left_out` those that a sparse checkout has not. `inner` are the folders of inner
    repositories, `unfilled` those of submodules that are not checked out.
    """

    trees: tuple[Tree, ...]
    holding: Holding
    modes: dict[str, int] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    private: IgnoredFiles = field(default_factory=IgnoredFiles)
    inner: frozenset[str] = frozenset()
    unfilled: frozenset[str] = frozenset()
    gone: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _InGit:
    """A file of which a repository has what it was."""

    tree: Tree
    entry: TreeEntry


_Was = FileState | _InGit


class CommandWatch:
    """Notes what commands change, for the ledger of a session. `begin` and `end` wait for git.

    Commands that overlap count as one, from the begin of the first to the end of the last.

    Args:
        excluded: folders of our own, whose files are nobody's work.
        report: gets a line where undo will not cover something, each line once.
    """

    def __init__(
        self,
        ledger: SessionLedger,
        session_folder: Path,
        *,
        excluded: Sequence[Path] = (),
        report: Callable[[str], object] | None = None,
        bounds: Bounds = USUAL_BOUNDS,
    ) -> None:
        self._ledger = ledger
        self._workspace = ledger.workspace
        self._held = HeldFiles(session_folder, self._workspace, bounds)
        self._finder = TreeFinder(
            self._workspace,
            self._held.folder,
            bounds.inner,
            lambda folder: not is_made_again(self._workspace, folder),
        )
        self._excluded = tuple(folder.resolve() for folder in excluded)
        self._report = report
        self._told: set[str] = set()
        self._running = 0
        self._before: Before | None = None
        self._lasting: Before | None = None
        self._spared: set[str] = set()
        self._lock = threading.Lock()
        ledger.when_closing(self._close)

    def begin(self) -> None:
        """Before a command. What cannot be noted is told, and is no reason not to run it."""
        with self._lock:
            self._running += 1
            if self._running > 1:
                return
            self._spare()
            try:
                self._before = self._noted()
            except OSError as error:
                self._before = None
                self._tell(f"undo will not cover what commands change: {error.strerror or error}")

    def end(self, *, goes_on: bool = False) -> None:
        """After a command, also after one that was cancelled.

        Of what `goes_on` nobody can tell later what it did to files and what a person did. Undo leaves
        that alone, but what files without a copy in git were is kept, and told.
        """
        with self._lock:
            self._running -= 1
            if self._running or self._before is None:
                return
            before, self._before = self._before, None
            try:
                self._settle(before)
                self._lasting = before if goes_on else None
                if not goes_on:
                    self._held.remove_note()
            except (OSError, AgentError) as error:
                reason = error.message if isinstance(error, AgentError) else error.strerror or str(error)
                self._tell(f"undo will not cover all that this command changed: {reason}")

    def _close(self) -> None:
        with self._lock:
            if self._lasting is not None:
                self._spare()
                self._held.remove_note()

    def _spare(self) -> None:
        """Keeps what files were that changed since a command which went on; see `end`."""
        before, self._lasting = self._lasting, None
        if before is None:
            return
        for key, state in before.holding.states.items():
            if state.kind != "file" or _is_still(self._workspace / key, before.holding.signatures[key]):
                continue
            try:
                kept = self._ledger.spare(key, state, self._held.contents)
            except OSError as error:
                self._tell(f"{key} changed while a command was in the background: {error.strerror or error}")
                continue
            if kept is not None and key not in self._spared:
                self._spared.add(key)  # a person may be at work on it, and needs no line for each version
                self._tell(f"{key} changed while a command was in the background; what it was is {kept}")

    def _noted(self) -> Before | None:
        self._held.prepare()
        place = self._finder.own()
        if place is None:
            return self._noted_outside()
        found = self._finder.look_at_all(place, self._tell)
        if isinstance(found, str):
            self._tell(f"undo will not cover what commands change: {found}")
            return None
        dirty, inside = self._ours(found.dirty), self._ours(found.dirty_inside)
        hidden = self._ours(found.hidden)
        private = ignored_files(self._workspace, found.ignored - found.inner, self._inside())
        holding = self._held.hold([*dirty, *hidden, *private.alone], [*inside, *private.within])
        gone = tuple(key for key in (*dirty, *inside) if key not in holding.signatures)
        left_out = frozenset(hidden) - holding.signatures.keys() - set(gone)
        modes: dict[str, int] = {}
        for keys in found.tracked:
            if len(modes) + len(keys) <= MOST_FILES:
                modes |= _modes(self._workspace, keys)
        unusual = {key: mode for key, mode in modes.items() if mode not in (0o644, 0o755)}
        states = holding.states | dict.fromkeys(gone, ABSENT)
        inner = [tree.prefix for tree in found.trees[1:]]
        self._held.write_note(states, unusual, has_index=True, inner=inner)
        return Before(
            trees=found.trees,
            holding=holding,
            modes=modes,
            ignored=found.ignored,
            private=private,
            inner=found.inner,
            unfilled=found.unfilled,
            gone=gone,
            left_out=left_out,
        )

    def _noted_outside(self) -> Before | None:
        keys = walk_keys(self._workspace, MOST_FILES)
        if keys is None:
            self._tell(f"undo will not cover what commands change: more than {MOST_FILES:,} files and no git")
            return None
        holding = self._held.hold(self._ours(keys))
        self._held.write_note(holding.states, {}, has_index=False)
        return Before((), holding)

    def _settle(self, before: Before) -> None:
        changed: dict[str, _Was] = {}
        lost: dict[str, str] = {}
        for key, signature in before.holding.signatures.items():
            if _is_still(self._workspace / key, signature):
                continue
            if key in before.holding.left:
                lost[key] = before.holding.left[key]
            elif key in before.holding.states:
                changed[key] = before.holding.states[key]
        problems: list[str] = []
        unknown: list[str] = []
        if not before.trees:
            present = walk_keys(self._workspace, MOST_FILES)
            changed |= dict.fromkeys(self._new(before, present or ()), ABSENT)
        for tree in before.trees:
            try:
                # What the outer repository tracks is the outer one's, whatever was made around it.
                changed = self._changed_in_repository(before, tree) | changed
            except AgentError as error:
                problems.append(error.message)
                unknown.append(tree.prefix)
        # Where a repository cannot tell, more than the permissions may have changed.
        known = {key: mode for key, mode in before.modes.items() if not key.startswith(tuple(unknown))}
        changed |= self._changed_permissions(before, known, changed)
        if len(changed) > MOST_ADOPTED:
            self._tell(f"undo will not cover this command, which changed {len(changed):,} files")
            return
        self._adopt(before, changed, lost)
        self._tell_lost(lost)
        if problems:
            raise AgentError("; ".join(problems))

    def _changed_in_repository(self, before: Before, tree: Tree) -> dict[str, _Was]:
        changed: dict[str, _Was] = {}
        if tree.prefix and signature_of(self._workspace / tree.prefix[:-1]) is not None:
            changed[tree.prefix[:-1]] = ABSENT  # a file or a link has taken its place
        found = tree.look()
        if isinstance(found, str):
            where = f"{tree.prefix}: " if tree.prefix else ""
            raise AgentError(f"{where}{found}")
        changed |= {key: ABSENT for key in before.gone if signature_of(self._workspace / key) is not None}
        held = {*before.holding.signatures, *before.gone}
        for entry in found.entries:
            if not entry.untracked and entry.differs and entry.key not in held:
                changed[entry.key] = ABSENT if entry.key in before.left_out else _InGit(tree, entry)
        # The files of an inner repository that is none any more are not new.
        inside = {prefix for prefix in before.inner if prefix.startswith(tree.prefix)} - {tree.prefix}
        untracked = [entry.key for entry in found.entries if entry.untracked]
        new = [key for key in untracked if not is_below(key, inside)]
        changed |= dict.fromkeys(self._new(before, new, tree.prefix), ABSENT)
        self._tell_of_new_repositories(before, found.nested)
        return changed

    def _changed_permissions(
        self, before: Before, modes: Mapping[str, int], changed: Mapping[str, _Was]
    ) -> dict[str, _Was]:
        """Of files whose content no repository has found changed; git has no eye for most permissions."""
        found: dict[str, _Was] = {}
        held = {*before.holding.signatures, *before.gone}
        for key, mode in modes.items():
            if key not in changed and key not in held and _mode(self._workspace, key) not in (mode, None):
                present = state_below(self._workspace, key)
                found[key] = FileState(present.kind, present.content, mode)
        return found

    def _new(self, before: Before, keys: Iterable[str], prefix: str = "") -> list[str]:
        """Files that were not there before. One that the repository at `prefix` ignored may have been."""
        ignored = {key for key in before.ignored if key.startswith(prefix)} - {prefix}
        known = {*before.holding.signatures, *before.modes, *before.gone}
        new = [key for key in self._ours(keys) if key not in known and not is_below(key, ignored)]
        # Pipes and sockets hold nothing, and belong to programs that may still be running.
        new += [key for key in before.private.made(self._workspace) if key not in known]
        return [key for key in new if _is_file_or_link(signature_of(self._workspace / key))]

    def _adopt(self, before: Before, changed: dict[str, _Was], lost: dict[str, str]) -> None:
        from_git = {key: one for key, one in changed.items() if isinstance(one, _InGit)}
        states = {key: one for key, one in changed.items() if isinstance(one, FileState)}
        for tree in before.trees:
            entries = [one.entry for one in from_git.values() if one.tree is tree]
            for entry, data in tree.original_bytes(entries) if entries else ():
                state = state_in_git(entry, data, before.modes, self._held)
                if state is None:
                    lost[entry.key] = "is not in git as it was, or too large"
                else:
                    states[entry.key] = state
        folders = {parent for key in before.holding.signatures for parent in _parents(key)}
        folders |= {parent for key in (*before.modes, *from_git) for parent in _parents(key)}
        folders |= {parent for key in before.private.folders for parent in _parents(key)}
        for key, state in states.items():
            if state.kind == "file" and not self._held.contents.path_of(state.content).exists():
                self._held.contents.keep(self._workspace / key)  # only its permissions changed
            made = [parent for parent in _parents(key) if parent not in folders] if state == ABSENT else []
            self._ledger.adopt(key, state, made, self._held.contents)

    def _ours(self, keys: Iterable[str]) -> list[str]:
        inside = self._inside()
        return [key for key in keys if not key.startswith(inside)] if inside else list(keys)

    def _inside(self) -> tuple[str, ...]:
        """Beginnings of the names of files of our own."""
        return tuple(
            folder.relative_to(self._workspace).as_posix() + "/"
            for folder in self._excluded
            if folder != self._workspace and folder.is_relative_to(self._workspace)
        )

    def _tell_of_new_repositories(self, before: Before, nested: Iterable[str]) -> None:
        filled = filter(self._finder.is_repository, before.unfilled)
        for folder in sorted({*nested, *filled} - before.inner):
            self._tell(f"undo will not cover the repository {folder} that a command made")

    def _tell_lost(self, lost: dict[str, str]) -> None:
        if not lost:
            return
        named = ", ".join(f"{key} {reason}" for key, reason in list(lost.items())[:_MOST_NAMED])
        more = f", and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else ""
        self._tell(f"undo will not cover files that a command changed: {named}{more}")

    def _tell(self, line: str) -> None:
        if self._report is not None and line not in self._told:
            self._told.add(line)
            self._report(line)


def state_in_git(
    entry: TreeEntry, data: bytes | None, modes: Mapping[str, int], held: HeldFiles
) -> FileState | None:
    """What git says a tracked file was, its content kept among the held; None where git cannot give it."""
    if data is None:
        return None
    if entry.mode == 0o120000:
        return FileState("link", data.decode("utf-8", "surrogateescape"))
    mode = modes.get(entry.key, 0o755 if entry.mode == 0o100755 else 0o644)
    return FileState("file", held.contents.add(data), mode)


def _is_still(path: Path, signature: Signature) -> bool:
    return signature_of(path) == signature


def _is_file_or_link(signature: Signature | None) -> bool:
    return signature is not None and (stat.S_ISREG(signature.mode) or stat.S_ISLNK(signature.mode))


def _modes(workspace: Path, keys: Iterable[str]) -> dict[str, int]:
    found = ((key, _mode(workspace, key)) for key in keys)
    return {key: mode for key, mode in found if mode is not None}


def _mode(workspace: Path, key: str) -> int | None:
    """The permissions of a regular file; None for anything else."""
    signature = signature_of(workspace / key)
    return signature.mode & 0o7777 if signature is not None and signature.mode >> 12 == 0o10 else None


def _parents(key: str) -> list[str]:
    """The folders on the way to a file, outermost first."""
    return [key[:at] for at, letter in enumerate(key) if letter == "/"]
