"""The repository of a workspace together with those inside of it: submodules, and clones that lie in it.

Git tells nothing of the files of an inner repository when the outer one is asked, so each is asked for
itself, with a copy of its own index. Nothing here writes to any of them.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from agent.repo.work_tree import (
    PlaceFinder,
    TrackedFiles,
    TreeEntry,
    TreeLook,
    TreePlace,
    copy_index,
    look,
    look_at_all,
    original_bytes,
)

Report = Callable[[str], object]
_MOST_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Tree:
    """One repository, looked at with the copy `index`. All names are those in the workspace.

    `prefix` is the folder of an inner repository with a `/` behind it, empty for the workspace's own.
    """

    place: TreePlace
    index: Path
    prefix: str = ""

    def look_at_all(self) -> tuple[TreeLook | str, TrackedFiles]:
        """See `work_tree.look_at_all`."""
        found, tracked = look_at_all(self.place, self.index)
        keys, hidden, links = map(self._outside, (tracked.keys, tracked.hidden, tracked.links))
        return found if isinstance(found, str) else self._named(found), TrackedFiles(keys, hidden, links)

    def look(self) -> TreeLook | str:
        """See `work_tree.look`. Of a folder that is gone all files are missing, where git still has them."""
        found = look(self._as_is(), self.index)
        return found if isinstance(found, str) else self._named(found)

    def original_bytes(self, entries: Sequence[TreeEntry]) -> Iterator[tuple[TreeEntry, bytes | None]]:
        """See `work_tree.original_bytes`."""
        inside = [replace(entry, key=entry.key.removeprefix(self.prefix)) for entry in entries]
        for entry, data in original_bytes(self._as_is(), self.index, inside):
            yield replace(entry, key=self.prefix + entry.key), data

    def _as_is(self) -> TreePlace:
        root = self.place.root
        if not self.prefix or (root.is_dir() and not root.is_symlink()):
            return self.place
        empty = self.index.with_name("empty")
        empty.mkdir(exist_ok=True)
        return replace(self.place, workspace=empty, root=empty)

    def _named(self, found: TreeLook) -> TreeLook:
        if not self.prefix:
            return found
        entries = tuple(replace(entry, key=self.prefix + entry.key) for entry in found.entries)
        return TreeLook(entries, frozenset(self._outside(found.ignored)), self._outside(found.nested))

    def _outside(self, keys: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.prefix + key for key in keys) if self.prefix else tuple(keys)


@dataclass(slots=True)
class TreesLook:
    """What there is in all repositories of a workspace before a command.

    `dirty` are names of files that are not as the commit has them, `dirty_inside` those in inner
    repositories. `inner` are the folders, with a `/`, of all inner repositories that were seen, also of those
    that could not be asked; `unfilled` those of submodules that are not checked out.
    """

    trees: tuple[Tree, ...]
    dirty: list[str] = field(default_factory=list)
    dirty_inside: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    tracked: list[tuple[str, ...]] = field(default_factory=list)
    ignored: frozenset[str] = frozenset()
    inner: frozenset[str] = frozenset()
    unfilled: frozenset[str] = frozenset()

    def add(self, tree: Tree, found: TreeLook, tracked: TrackedFiles) -> None:
        (self.dirty_inside if tree.prefix else self.dirty).extend(entry.key for entry in found.entries)
        self.hidden.extend(tracked.hidden)
        self.tracked.append(tracked.keys)
        self.ignored |= found.ignored


class TreeFinder:
    """Finds the repositories of a workspace; git is asked again only where something may have moved.

    Args:
        workspace: resolved.
        indexes: a folder for copies of their indexes, the workspace's own being named `index`.
        most: so many inner repositories are looked at.
        is_worth: whether those in an ignored folder are, given its name with a `/`.
    """

    def __init__(
        self,
        workspace: Path,
        indexes: Path,
        most: int = 0,
        is_worth: Callable[[str], bool] = lambda folder: False,
    ) -> None:
        self._workspace = workspace
        self._indexes = indexes
        self._most = most
        self._is_worth = is_worth
        self._finders: dict[str, PlaceFinder] = {}

    def own(self) -> TreePlace | None:
        """Where the workspace itself is."""
        return self._finder("").find()

    def look_at_all(self, place: TreePlace, report: Report) -> TreesLook | str:
        """What is in the repository at `place` and in those inside; one line where git cannot tell.

        `report` gets a line about each inner one that cannot be asked.
        """
        own = Tree(place, self._indexes / "index")
        if not copy_index(place, own.index):
            return "git's index cannot be read"
        found, tracked = own.look_at_all()
        if isinstance(found, str):
            return found
        whole = TreesLook((own,))
        whole.add(own, found, tracked)
        waiting = deque(self._inner_folders(found, tracked))
        seen: set[str] = set()
        while waiting:
            prefix = waiting.popleft()
            if prefix not in seen and self.is_repository(prefix):
                waiting.extend(self._add_inner(prefix, whole, report))
            seen.add(prefix)
        whole.inner = frozenset(filter(self.is_repository, seen))
        whole.unfilled = frozenset(seen) - whole.inner
        return whole

    def is_repository(self, prefix: str) -> bool:
        """Whether a folder of the workspace has something that looks like one."""
        return os.path.lexists(self._workspace / prefix / ".git")

    def again(self, inner: Sequence[str]) -> list[Tree]:
        """The trees of an earlier time, with the indexes that were copied then: all that are still there."""
        own = self.own()
        trees = [] if own is None else [Tree(own, self._indexes / "index")]
        for number, prefix in enumerate(inner, 1):
            place = self._inner_place(prefix)
            if place is not None:
                trees.append(Tree(place, self._indexes / f"index-{number}", prefix))
        return trees

    def _add_inner(self, prefix: str, whole: TreesLook, report: Report) -> Iterable[str]:
        """Adds what an inner repository has, and gives those inside of it."""
        number = len(whole.trees)
        if number > self._most:
            report(f"undo will not cover what commands change in more than {self._most} inner repositories")
            return ()
        place = self._inner_place(prefix)
        if place is None:
            report(f"undo will not cover what commands change in the repository {prefix}")
            return ()
        tree = Tree(place, self._indexes / f"index-{number}", prefix)
        found, tracked = (
            tree.look_at_all()
            if copy_index(place, tree.index)
            else ("its index cannot be read", TrackedFiles())
        )
        if isinstance(found, str):
            report(f"undo will not cover what commands change in the repository {prefix}: {found}")
            return ()
        whole.trees = (*whole.trees, tree)
        whole.add(tree, found, tracked)
        if (self._workspace / prefix / ".git").is_file():
            whole.dirty_inside.append(f"{prefix}.git")  # a file that says where git's folder is
        return self._inner_folders(found, tracked)

    def _inner_folders(self, found: TreeLook, tracked: TrackedFiles) -> list[str]:
        """The folders of repositories inside of one: submodules, and what it ignores or does not know."""
        ignored = [key for key in sorted(found.ignored) if key.endswith("/") and self._is_worth(key)]
        in_ignored = [name for folder in ignored for name in (folder, *self._folders_in(folder))]
        links = (f"{link}/" for link in tracked.links)
        return [*links, *found.nested, *filter(self.is_repository, in_ignored)]

    def _folders_in(self, folder: str) -> list[str]:
        try:
            with os.scandir(self._workspace / folder) as entries:
                some = sorted(entry.name for entry in islice(entries, _MOST_LOOKED_AT) if entry.is_dir())
        except OSError:
            return []
        return [f"{folder}{name}/" for name in some]

    def _inner_place(self, prefix: str) -> TreePlace | None:
        place = self._finder(prefix).find()
        # A `.git` that is none lets git find the outer repository.
        return place if place is not None and place.root == place.workspace else None

    def _finder(self, prefix: str) -> PlaceFinder:
        if prefix not in self._finders:
            self._finders[prefix] = PlaceFinder(self._workspace / prefix)
        return self._finders[prefix]
