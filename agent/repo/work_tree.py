"""What is in a work tree before and after a command, so that what the command did can be taken back.

Clean tracked files need no copy: git has their content. That is only true of the index as it was before the
command, so a copy of the index is looked at both times. Nothing here writes to the repository.
"""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agent.core.regular_file import read_regular
from agent.repo.files import SKIPPED_FOLDERS
from agent.repo.git import locate, without_local_filters
from agent.repo.git_process import Answer, ask, asking, index_variables, place_variables, start_talking

_CONVERTING = ("text", "eol", "crlf", "ident", "filter", "working-tree-encoding")
_SIZE = re.compile(rb"\tsize: (\d+)\tflags: ")
_PATHS_AT_ONCE = 500
_GIT_LINK = 0o160000
_LARGEST_BLOB = 64 * 1000 * 1000
_MOST_BYTES = 200 * 1000 * 1000
_CHUNK_BYTES = 1 << 20
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class TreePlace:
    """Where the files of `workspace` are tracked; `root` is the top of the work tree, resolved.

    `git_dir` and `common_dir` are git's own folders; they differ in a linked work tree.
    """

    workspace: Path
    root: Path
    git_dir: Path
    common_dir: Path

    def key(self, path: str) -> str | None:
        """The name in the workspace of a path from the root; None for what is elsewhere."""
        if self.root == self.workspace:
            return path
        before = self.workspace.relative_to(self.root).as_posix() + "/"
        return path.removeprefix(before) if path.startswith(before) else None

    def path(self, key: str) -> str:
        """The inverse of `key`."""
        return (self.workspace.relative_to(self.root) / key).as_posix()


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file that is not as the commit has it. `blob` and `mode` are those of the index, empty without."""

    key: str
    untracked: bool = False
    differs: bool = True
    blob: str = ""
    mode: int = 0


@dataclass(frozen=True, slots=True)
class TreeLook:
    """`ignored` are names of files, and of folders with a `/`; `nested` other repositories in here."""

    entries: tuple[TreeEntry, ...]
    ignored: frozenset[str] = frozenset()
    nested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrackedFiles:
    """Names of tracked files. `hidden` are those of them at which git was told not to look (assume-unchanged,
    skip-worktree): people do that to files which they change for themselves, and no status shows it.
    `links` are the folders of submodules, without a `/`."""

    keys: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


def tree_place(workspace: Path) -> TreePlace | None:
    """Where `workspace` (resolved) is in a repository; None where it is in none that can be asked."""
    state = locate(workspace, os.environ)
    if not state.is_repo or state.problem:
        return None
    return TreePlace(workspace, state.root.resolve(), state.git_dir, state.common_dir)


class PlaceFinder:
    """Finds where a workspace is in a repository, and asks git again only if something may have moved."""

    def __init__(self, workspace: Path) -> None:
        """`workspace` is resolved."""
        self._workspace = workspace
        self._known: tuple[TreePlace, tuple[object, ...]] | None = None

    def find(self) -> TreePlace | None:
        """See `tree_place`."""
        if self._known is not None and self._known[1] == _landmarks(self._known[0]):
            return self._known[0]
        place = tree_place(self._workspace)
        self._known = None if place is None else (place, _landmarks(place))
        return place


def _landmarks(place: TreePlace) -> tuple[object, ...]:
    """What decides where git looks: each `.git` on the way up to the root, and the repository's settings."""
    way = [
        folder for folder in (place.workspace, *place.workspace.parents) if folder.is_relative_to(place.root)
    ]
    marks: list[object] = [_mark(folder / ".git") for folder in way]
    for folder in dict.fromkeys((place.git_dir, place.common_dir)):
        marks += [_mark(folder), _mark(folder / "HEAD")[:1]]
        marks += [_content(folder / name) for name in ("config", "config.worktree", "commondir")]
    return tuple(marks)


def _mark(path: Path) -> tuple[int, ...]:
    """Kind and identity of a file or folder; of a file also its times and size. Empty where there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    if stat.S_ISDIR(status.st_mode):
        return (stat.S_IFMT(status.st_mode), status.st_ino)
    return (
        stat.S_IFMT(status.st_mode),
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


def copy_index(place: TreePlace, destination: Path) -> bool:
    """Copies the index with its time, by which git tells which files it has to read again."""
    source = place.git_dir / "index"
    try:
        if not source.exists():
            destination.unlink(missing_ok=True)
            return True  # nothing is tracked yet
        shutil.copyfile(source, destination)
        status = source.stat()
        os.utime(destination, ns=(status.st_atime_ns, status.st_mtime_ns))
    except OSError:
        return False
    return True


def look(place: TreePlace, index: Path, *, with_ignored: bool = False) -> TreeLook | str:
    """What differs from `index`; one line of text where git cannot tell."""
    arguments = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"]
    arguments += ["--ignore-submodules=all", "--no-ahead-behind"]
    arguments += ["--ignored=matching"] if with_ignored else []
    answer = _ask(place, index, [*arguments, "--", "."])
    return _parsed(place, answer.output) if answer.code == 0 else answer.first_error


def look_at_all(place: TreePlace, index: Path) -> tuple[TreeLook | str, TrackedFiles]:
    """A look with what is ignored, and all tracked files; both are asked for at once.

    There are no names where git cannot tell them.
    """
    names = ["ls-files", "-z", "--cached", "-v", "--stage"]
    with asking(place.workspace, names, environment=_environment(place, index)) as listing:
        found = look(place, index, with_ignored=True)
        answer = listing.answer(seconds=_SECONDS)
    return found, _tracked(answer.output if answer.code == 0 else b"")


def _tracked(listing: bytes) -> TrackedFiles:
    """Reads lines of a tag, a mode, a blob, a stage and, after a tab, a name."""
    lines = os.fsdecode(listing).split("\0")[:-1]
    names = [line[line.find("\t") + 1 :] for line in lines]
    hidden = tuple(
        name for line, name in zip(lines, names, strict=True) if line[0] == "S" or line[0].islower()
    )
    link = f"{_GIT_LINK:o} "
    links = tuple(line[line.find("\t") + 1 :] for line in lines if line.startswith(link, 2))
    # A conflict has up to three lines for one name.
    return TrackedFiles(tuple(dict.fromkeys(names)), hidden, links)


def original_bytes(
    place: TreePlace, index: Path, entries: Sequence[TreeEntry]
) -> Iterator[tuple[TreeEntry, bytes | None]]:
    """What clean files were before a command, byte for byte; None where that cannot be said.

    Files whose bytes git converts (line ends, filters) come out right only if their size is the one that
    the index has of them. A file over 64 MB, or beyond 200 MB together, is None too.
    """
    room = _MOST_BYTES
    converted = _converted(place, index, entries)
    sizes = _sizes(place, index, [entry for entry in entries if entry.key in converted])
    with _Blobs(place) as blobs:
        for entry in entries:
            data = blobs.read(entry.blob, min(room, _LARGEST_BLOB))
            room -= len(data or b"")
            if data is not None and entry.key in converted:
                data = _as_checked_out(place, index, entry, data, sizes.get(entry.key))
            yield entry, data


def walk_keys(workspace: Path, most: int) -> list[str] | None:
    """All files below a folder that is in no repository, besides caches; None where there are more."""
    keys: list[str] = []
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(workspace / folder))
        except OSError:
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if not entry.is_dir(follow_symlinks=False):
                keys.append(name)
            elif entry.name not in SKIPPED_FOLDERS:
                waiting.append(name)
        if len(keys) + len(waiting) > most:
            return None
    return keys


def _parsed(place: TreePlace, output: bytes) -> TreeLook:
    entries: list[TreeEntry] = []
    ignored: set[str] = set()
    nested: list[str] = []
    for line in output.split(b"\0"):
        kind, _, rest = os.fsdecode(line).partition(" ")
        if kind in ("?", "!"):
            key = place.key(rest)
            if key is None:
                continue
            if kind == "!":
                ignored.add(key)
            elif key.endswith("/"):
                nested.append(key)
            else:
                entries.append(TreeEntry(key, untracked=True))
        elif kind == "1":
            state, _, _, mode, _, _, blob, path = rest.split(" ", 7)
            key = place.key(path)
            if key is not None and int(mode, 8) != _GIT_LINK:
                entries.append(TreeEntry(key, differs=state[1] != ".", blob=blob, mode=int(mode, 8)))
        elif kind == "u":
            key = place.key(rest.split(" ", 9)[9])
            if key is not None:
                entries.append(TreeEntry(key))
    return TreeLook(tuple(entries), frozenset(ignored), tuple(nested))


def _ask(place: TreePlace, index: Path, arguments: Sequence[str], data: bytes = b"") -> Answer:
    environment = _environment(place, index)
    return ask(
        place.workspace,
        arguments,
        environment=environment,
        overrides=without_local_filters(place.workspace, environment, (place.git_dir, place.common_dir)),
        data=data,
        seconds=_SECONDS,
    )


def _environment(place: TreePlace, index: Path) -> dict[str, str]:
    """Names the repository: a command may have made another one that git would take for it.

    The settings that were looked through for programs have to be those that git then reads.
    """
    chosen = place_variables(place.git_dir, place.common_dir, place.root)
    return {**os.environ, **index_variables(index), **chosen}


def _converted(place: TreePlace, index: Path, entries: Sequence[TreeEntry]) -> set[str]:
    """Files whose bytes in the work tree may differ from those that git has of them."""
    setting = ask(place.workspace, ["config", "--get", "core.autocrlf"]).output.strip()
    if setting not in (b"", b"false", b"no", b"off", b"0"):
        return {entry.key for entry in entries}
    names = b"".join(os.fsencode(entry.key) + b"\0" for entry in entries)
    answer = _ask(place, index, ["check-attr", "-z", "--stdin", *_CONVERTING], names)
    if answer.code != 0:
        return {entry.key for entry in entries}
    words = [os.fsdecode(word) for word in answer.output.split(b"\0")]
    triples = zip(words[::3], words[1::3], words[2::3], strict=False)
    return {name for name, _, value in triples if value not in ("unspecified", "unset")}


def _sizes(place: TreePlace, index: Path, entries: Sequence[TreeEntry]) -> dict[str, int]:
    """The sizes in the work tree that the index has noted."""
    sizes: dict[str, int] = {}
    for start in range(0, len(entries), _PATHS_AT_ONCE):
        some = entries[start : start + _PATHS_AT_ONCE]
        paths = [f":(literal){entry.key}" for entry in some]
        answer = _ask(place, index, ["ls-files", "-z", "--debug", "--", *paths])
        name = b""
        for part in answer.output.split(b"\0"):
            found = _SIZE.search(part)
            if found is not None and name:
                sizes[os.fsdecode(name)] = int(found[1])
            name = part.rpartition(b"\n")[2]
    return sizes


def _as_checked_out(
    place: TreePlace, index: Path, entry: TreeEntry, blob: bytes, size: int | None
) -> bytes | None:
    arguments = ["cat-file", "--filters", f"--path={place.path(entry.key)}", entry.blob]
    answer = _ask(place, index, arguments)
    candidates = (answer.output, blob) if answer.code == 0 else (blob,)
    return next((data for data in candidates if len(data) == size), None)


class _Blobs:
    """Reads objects of a repository, one after the other, with one process."""

    def __init__(self, place: TreePlace) -> None:
        self._place = place
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "_Blobs":
        # Named, as the folder may belong to another repository by now.
        where = [f"--git-dir={self._place.git_dir}", f"--work-tree={self._place.root}"]
        words = [*where, "cat-file", "--batch"]
        self._process = start_talking(self._place.workspace, words)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):  # git has ended by itself
                stream.close() if stream else None
        self._process.wait()

    def read(self, blob: str, most: int) -> bytes | None:
        """The bytes of an object; None where there is none, or it has more than `most`."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None or not blob:
            return None
        try:
            process.stdin.write(f"{blob}\n".encode("ascii"))
            process.stdin.flush()
            words = process.stdout.readline().split()
            if len(words) != 3 or words[1] != b"blob":
                return None
            size = int(words[2])
            if size > most:
                _skip(process.stdout, size + 1)
                return None
            data = process.stdout.read(size)
            process.stdout.read(1)
        except OSError:
            return None
        return data if len(data) == size else None


def _skip(stream: IO[bytes], size: int) -> None:
    while size > 0 and (chunk := stream.read(min(size, _CHUNK_BYTES))):
        size -= len(chunk)


def is_below(key: str, folders_and_files: Iterable[str] | Mapping[str, object]) -> bool:
    """Whether a name is one of those, or in one of the folders, which end with a `/`."""
    known = folders_and_files if isinstance(folders_and_files, frozenset | set) else set(folders_and_files)
    if key in known:
        return True
    parents = [key[: at + 1] for at, letter in enumerate(key) if letter == "/"]
    return any(parent in known for parent in parents)
