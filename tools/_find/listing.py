"""The files of a folder that a person would call part of the project."""

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from agent.core.quiet_git import FOREIGN_VARIABLES, QUIET_VARIABLES, find_git, settings_words
from agent.core.regular_file import read_regular
from agent.core.waiting_pipes import nobody_waits_for_pipes
from tools._text.paths import SKIPPED_FOLDERS

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_GIT_SECONDS = 30.0
_LARGEST_IGNORE_BYTES = 1_000_000
_WALKED_AT_MOST = 100_000


async def list_files(folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Paths of all files below `folder`, relative to it, with `/`, in the order of their parts.

    Inside a git repository git decides what is ignored, elsewhere the `.gitignore` files found on the
    way down do. `SKIPPED_FOLDERS` are left out in both cases. Symbolic links to folders are not followed.
    """
    import asyncio

    listed = await _listed_by_git(folder, environment)
    if listed is None:
        listed = await asyncio.to_thread(lambda: list(islice(_walk(folder, ()), _WALKED_AT_MOST)))
    return await asyncio.to_thread(_in_order, listed)


def _in_order(names: Iterable[str]) -> list[str]:
    kept = (name for name in names if SKIPPED_FOLDERS.isdisjoint(name.split("/")))
    return sorted(kept, key=lambda name: name.split("/"))


async def _listed_by_git(folder: Path, environment: Mapping[str, str]) -> list[str] | None:
    if not in_repository(folder):
        return None
    git = find_git(environment)
    if git is None:
        return None
    arguments = (*settings_words(), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    output = await _output_of(git, arguments, folder, environment)
    if not output:  # git failed, or the whole folder is ignored and was named all the same
        return None
    import asyncio

    names, folders = await asyncio.to_thread(_files_and_folders, folder, output)
    for entry in folders:  # submodules and nested repositories
        base = entry.rstrip("/")
        names += [f"{base}/{name}" for name in await list_files(folder / entry, environment)]
    return names


def _files_and_folders(folder: Path, output: bytes) -> tuple[list[str], list[str]]:
    """What git has listed as far as it is there; each is looked at, and there may be tens of thousands."""
    names: list[str] = []
    folders: list[str] = []
    for entry in dict.fromkeys(os.fsdecode(part) for part in output.split(b"\0") if part):
        kind = _kind(folder / entry)
        if kind is not None:
            (names if kind == "file" else folders).append(entry)
    return names, folders


async def _output_of(
    program: str, arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str]
) -> bytes | None:
    """Standard output of a program that succeeded in time, else `None`."""
    import asyncio

    own = {name: value for name, value in environment.items() if name not in FOREIGN_VARIABLES}
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            cwd=folder,
            env={**own, **QUIET_VARIABLES, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None
    try:
        with nobody_waits_for_pipes(folder):
            output, _ = await asyncio.wait_for(process.communicate(), _GIT_SECONDS)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    return output if process.returncode == 0 else None


def in_repository(folder: Path) -> bool:
    """Whether git may know the folder."""
    return any(_kind(place / ".git") for place in (folder, *folder.parents))


def _kind(path: "Path | os.DirEntry[str]") -> Literal["file", "folder"] | None:
    """`None` for what is missing, out of reach or neither, and for links that do not lead to a file."""
    try:
        if path.is_file():
            return "file"
        return "folder" if path.is_dir() and not path.is_symlink() else None
    except OSError:
        return None


def _walk(folder: Path, ignores: tuple[tuple[Path, "GitIgnoreSpec"], ...], base: str = "") -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return  # what cannot be read cannot be listed
    spec = _ignore_file(folder)
    if spec:
        ignores = (*ignores, (folder, spec))
    for entry in entries:
        kind = _kind(entry)
        is_folder = kind == "folder"
        if entry.name in SKIPPED_FOLDERS or _is_ignored(Path(entry.path), is_folder, ignores):
            continue
        name = f"{base}{entry.name}"
        if is_folder:
            yield from _walk(Path(entry.path), ignores, f"{name}/")
        elif kind == "file":
            yield name


def _ignore_file(folder: Path) -> "GitIgnoreSpec | None":
    try:
        text = read_regular(folder / ".gitignore", _LARGEST_IGNORE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(text.split("\n"))


def _is_ignored(path: Path, is_folder: bool, ignores: tuple[tuple[Path, "GitIgnoreSpec"], ...]) -> bool:
    """The deepest ignore file that says anything about the path decides."""
    for folder, spec in reversed(ignores):
        relative = PurePosixPath(path).relative_to(folder).as_posix()
        verdict = spec.check_file(f"{relative}/" if is_folder else relative).include
        if verdict is not None:
            return verdict
    return False
