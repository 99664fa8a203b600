"""The sources of a folder, read once: what did not change is taken from the cache."""

import contextlib
import hashlib
import json
import os
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools._outline import worker
from tools._outline.languages import language_of
from tools._process.lines import read_lines

VERSION = 1
READER = Path(worker.__file__)
SECONDS = 20.0
MOST_FILES = 20_000
_LARGEST_CACHE_BYTES = 64 * 1024 * 1024
_MOST_CRASHES = 20


@dataclass(frozen=True, slots=True)
class Definition:
    """`depth` counts the types around it; `line` from 1."""

    line: int
    depth: int
    name: str
    signature: str


@dataclass(frozen=True, slots=True)
class Source:
    """What a file defines, and the words in it. `stamp` is its time of change and its size."""

    stamp: tuple[int, int]
    definitions: tuple[Definition, ...]
    words: str


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
) -> Index:
    """Reads what is new or changed among `names` (relative to `workspace`), up to `MOST_FILES`.

    Args:
        cache: the folder that keeps what was read; None = nothing is kept.
        seconds: after which what could not be read yet is left for the next time.
        reader: the program that reads sources, see `tools._outline.worker`.

    Raises:
        OSError: the reader cannot be started.
    """
    import asyncio

    file = _cache_file(cache, workspace) if cache else None
    known = await asyncio.to_thread(_load, file) if file else {}
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
        await asyncio.to_thread(_save, file, workspace, kept)
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
            index.sources[name] = Source(self.stamps[name], (), "")


def _asked(names: Iterable[str]) -> bytes:
    files = []
    for name in names:
        language = language_of(name)
        if language:
            files.append((name, language.module, language.function, language.query or language.name))
    return json.dumps(files).encode("ascii")


def _parsed(line: bytes, stamps: Mapping[str, tuple[int, int]]) -> tuple[str, Source]:
    answer = json.loads(line)
    definitions = tuple(Definition(*one) for one in answer["definitions"])
    return answer["name"], Source(stamps[answer["name"]], definitions, answer["words"])


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


def _cache_file(cache: Path, workspace: Path) -> Path:
    return cache / "outline" / f"{hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]}.json.z"


def _load(file: Path) -> dict[str, Source]:
    """What was kept; nothing where that is damaged or of another version."""
    try:
        if file.stat().st_size > _LARGEST_CACHE_BYTES:
            return {}
        table = json.loads(zlib.decompress(file.read_bytes()))
        if table["version"] != VERSION:
            return {}
        return {
            name: Source((mtime, size), tuple(Definition(*one) for one in definitions), words)
            for name, (mtime, size, definitions, words) in table["files"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zlib.error):
        return {}


def _save(file: Path, workspace: Path, sources: Mapping[str, Source]) -> None:
    """Without files that are gone. A cache that cannot be written costs time, nothing else."""
    table: dict[str, Any] = {
        name: (
            *source.stamp,
            [(d.line, d.depth, d.name, d.signature) for d in source.definitions],
            source.words,
        )
        for name, source in sources.items()
        if os.path.lexists(workspace / name)
    }
    text = json.dumps({"version": VERSION, "files": table}, ensure_ascii=False, separators=(",", ":"))
    data = zlib.compress(text.encode("utf-8", "surrogateescape"), 1)
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            Path(name).replace(file)
        finally:
            Path(name).unlink(missing_ok=True)
