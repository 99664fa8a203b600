"""The sources of a folder, read once: what did not change is taken from the cache."""

import contextlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools._outline import worker
from tools._outline.kept import load_sources, save_sources, sources_file
from tools._outline.languages import language_of
from tools._outline.sources import Source, source_of
from tools._process.lines import read_lines

READER = Path(worker.__file__)
SECONDS = 20.0
MOST_FILES = 20_000
_MOST_CRASHES = 20


@dataclass(slots=True)
class Index:
    """`sources` by name, relative to the workspace. `missing` files were not read in time."""

    sources: dict[str, Source] = field(default_factory=dict)
    missing: int = 0


async def build_index(
    workspace: Path,
    names: Sequence[str],
    environment: Mapping[str, str],
    cache: Path | None,
    seconds: float = SECONDS,
    reader: Path = READER,
    known: Mapping[str, Source] | None = None,
) -> Index:
    """Reads what is new or changed among `names` (relative to `workspace`), up to `MOST_FILES`.

    Args:
        cache: the folder that keeps what was read; None = nothing is kept.
        seconds: after which what could not be read yet is left for the next time.
        reader: the program that reads sources, see `tools._outline.worker`.
        known: what was read before, if the caller has it still; else it is looked up in `cache`.

    Raises:
        OSError: the reader cannot be started.
    """
    import asyncio

    file = sources_file(cache, workspace) if cache else None
    if known is None:
        known = await asyncio.to_thread(load_sources, file) if file else {}
    stamps = await asyncio.to_thread(_stamps, workspace, names[:MOST_FILES])
    index = Index({name: known[name] for name, stamp in stamps.items() if _is_same(known.get(name), stamp)})
    wanted = [name for name in stamps if name not in index.sources]
    if wanted:
        read = _Reading(workspace, stamps, environment, reader)
        await read.into(index, wanted, seconds)
        index.missing = sum(name not in index.sources for name in wanted)
    index.missing += max(0, len(names) - MOST_FILES)
    if file and wanted:
        kept = {**{name: source for name, source in known.items() if name not in stamps}, **index.sources}
        await asyncio.to_thread(save_sources, file, workspace, kept)
    return index


@dataclass(frozen=True, slots=True)
class _Reading:
    """How files are read: in which folder, of which state, and by what."""

    workspace: Path
    stamps: Mapping[str, tuple[int, int]]
    environment: Mapping[str, str]
    reader: Path

    async def into(self, index: Index, wanted: list[str], seconds: float) -> None:
        """A file that ends the reader counts as one that defines nothing, until it changes."""
        end = time.monotonic() + seconds
        for _ in range(_MOST_CRASHES):
            left = end - time.monotonic()
            if not wanted or left <= 0:
                return
            done = len(index.sources)

            def on_line(line: bytes) -> bool:
                name, source = _parsed(line, self.stamps)
                index.sources[name] = source
                return True

            command = [sys.executable, "-I", str(self.reader)]
            outcome = await read_lines(
                command, self.workspace, self.environment, left, on_line, _asked(wanted)
            )
            wanted = wanted[len(index.sources) - done :]
            if outcome.returncode == 0 or outcome.timed_out or not wanted:
                return
            name = wanted.pop(0)
            index.sources[name] = Source(self.stamps[name])


def _asked(names: Iterable[str]) -> bytes:
    files = []
    for name in names:
        language = language_of(name)
        if language:
            files.append((name, language.module, language.function, language.query or language.name))
    return json.dumps(files).encode("ascii")


def _parsed(line: bytes, stamps: Mapping[str, tuple[int, int]]) -> tuple[str, Source]:
    answer = json.loads(line)
    return answer["name"], source_of(stamps[answer["name"]], answer["definitions"], answer["words"])


def _stamps(workspace: Path, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Of regular files alone: what a link leads to is listed where it lies, or is none of the project's."""
    stamps: dict[str, tuple[int, int]] = {}
    for name in names:
        with contextlib.suppress(OSError):
            status = os.lstat(workspace / name)
            if stat.S_ISREG(status.st_mode):
                stamps[name] = (status.st_mtime_ns, status.st_size)
    return stamps


def _is_same(source: Source | None, stamp: tuple[int, int]) -> bool:
    return source is not None and source.stamp == stamp
