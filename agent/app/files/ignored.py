"""Which of the files that git ignores may be a person's own work, and are kept before a command.

Settings, notes, a database, a folder with data: git has none of it. What is made again (builds, caches,
installed packages) is left out, as copying it would cost more than it is worth.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.repo.files import SKIPPED_FOLDERS
from agent.repo.work_tree import walk_keys
from agent.session.held import Signature, signature_of

MOST_ALONE = 1_000
MOST_IN_FOLDERS = 2_000
"""So many files of ignored folders are looked at; folders beyond that are left out, small ones come first."""

_FILE_MADE_AGAIN = re.compile(
    r".*\.(py[cod]|o|obj|a|so|dylib|dll|exe|class|jar|wasm|log|tmp|gcda|gcno|map|tsbuildinfo|swp)|.*cache"
    r"|\.coverage.*|coverage\.(xml|json|lcov)|tags|a\.out|core|\.ds_store|thumbs\.db"
)
_FOLDER_MADE_AGAIN = re.compile(
    r".*cache|_?build|cmake-build-.*|builds|dist|target|out|bin|obj|debug|release|_site|public|htmlcov|coverage|vendor|pods"
    r"|bower_components|jspm_packages|deriveddata|site-packages|wheelhouse|.*\.(egg-info|egg|dsym|app)|\.eggs"
    r"|\.(next|nuxt|output|svelte-kit|angular|turbo|parcel.*|gradle|terraform|yarn|pnpm-store|nox|direnv|hypothesis"
    r"|ipynb_checkpoints|dart_tool|stack-work|bundle|serverless|docusaurus|vite|expo|nyc_output|ccls.*|vs)"
)
_SIGNS_OF_MADE_AGAIN = ("pyvenv.cfg", "CACHEDIR.TAG", "CMakeCache.txt")


@dataclass(frozen=True, slots=True)
class IgnoredFiles:
    """`alone` lie by themselves; `folders` have all names in them, of which `within` are worth keeping."""

    alone: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    folders: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def made(self, workspace: Path) -> list[str]:
        """Files of the folders that are new."""
        return [
            key
            for folder, names in self.folders.items()
            for key in walked(workspace, folder, MOST_IN_FOLDERS) or ()
            if key not in names and not _is_made_again(key)
        ]


def ignored_files(workspace: Path, ignored: Iterable[str], excluded: Iterable[str] = ()) -> IgnoredFiles:
    """What is worth keeping of what git calls ignored: names of files, and of folders with a `/`.

    `excluded` are beginnings of names that are nobody's work.
    """
    keys = sorted(key for key in ignored if not key.startswith(tuple(excluded)))
    files = [key for key in keys if not key.endswith("/") and not _is_made_again(key)]
    found: dict[str, frozenset[str]] = {}
    room = MOST_IN_FOLDERS
    for folder in keys:
        if not folder.endswith("/") or is_made_again(workspace, folder):
            continue
        names = walked(workspace, folder, room)
        if names is not None:
            found[folder] = frozenset(names)
            room -= len(names)
    within = [key for names in found.values() for key in sorted(names) if not _is_made_again(key)]
    alone = [key for key in files[:MOST_ALONE] if not _is_program(workspace, key)]
    return IgnoredFiles(tuple(alone), tuple(within), found)


def walked(workspace: Path, folder: str, most: int) -> list[str] | None:
    """Names of the files in an ignored folder; None where there are more than `most`."""
    names = walk_keys(workspace / folder, most)
    return None if names is None else [f"{folder}{name}" for name in names]


def _is_made_again(key: str) -> bool:
    return _FILE_MADE_AGAIN.fullmatch(key.rpartition("/")[2].lower()) is not None


def is_made_again(workspace: Path, folder: str) -> bool:
    """Whether an ignored folder holds what is built, installed or fetched."""
    parts = folder.rstrip("/").split("/")
    if not SKIPPED_FOLDERS.isdisjoint(parts) or any(
        _FOLDER_MADE_AGAIN.fullmatch(part.lower()) for part in parts
    ):
        return True
    return any((workspace / folder / sign).exists() for sign in _SIGNS_OF_MADE_AGAIN)


def _is_program(workspace: Path, key: str) -> bool:
    """Whether it looks like what a linker makes: it may be run, and its name has no ending."""
    signature: Signature | None = signature_of(workspace / key)
    runs = signature is not None and signature.mode >> 12 == 0o10 and bool(signature.mode & 0o111)
    return runs and "." not in key.rpartition("/")[2]
