"""What was read and weighed, on disk for the next session. It may be lost at any time."""

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.core.whole_file import write_whole
from tools._outline.rank import Ranking
from tools._outline.sources import Source

VERSION = 2
_LARGEST_BYTES = 64 * 1024 * 1024
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, zlib.error)


def sources_file(cache: Path, workspace: Path) -> Path:
    return cache / "outline" / f"{_mark(workspace)}.json.z"


def ranking_file(cache: Path, workspace: Path) -> Path:
    return cache / "outline" / f"{_mark(workspace)}.rank.json.z"


def load_sources(file: Path) -> dict[str, Source]:
    """What was kept; nothing where that is damaged or of another version."""
    try:
        files = _load(file)["files"]
        return {
            name: Source((mtime, size), _text(names), _text(places), _text(words))
            for name, (mtime, size, names, places, words) in files.items()
        }
    except _DAMAGED:
        return {}


def save_sources(file: Path, workspace: Path, sources: Mapping[str, Source]) -> None:
    """Without files that are gone. What cannot be written costs time, nothing else."""
    files = {
        name: (*source.stamp, source.names, source.places, source.words)
        for name, source in sources.items()
        if os.path.lexists(workspace / name)
    }
    _save(file, {"files": files})


def load_ranking(file: Path) -> Ranking | None:
    """The weights that were kept; None where there are none, or damaged ones."""
    try:
        table = _load(file)
        return Ranking(
            files={name: float(weight) for name, weight in table["files"].items()},
            uses={name: float(weight) for name, weight in table["uses"].items()},
            stamps={name: (int(mtime), int(size)) for name, (mtime, size) in table["stamps"].items()},
        )
    except _DAMAGED:
        return None


def save_ranking(file: Path, ranking: Ranking) -> None:
    files = {name: float(f"{weight:.6g}") for name, weight in ranking.files.items()}
    _save(file, {"files": files, "uses": ranking.uses, "stamps": ranking.stamps})


def _mark(workspace: Path) -> str:
    return hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text was kept")
    return value


def _load(file: Path) -> dict[str, Any]:
    if file.stat().st_size > _LARGEST_BYTES:
        raise ValueError("too large")
    table = json.loads(zlib.decompress(file.read_bytes()))
    if table["version"] != VERSION:
        raise ValueError("another version")
    return table


def _save(file: Path, table: Mapping[str, Any]) -> None:
    text = json.dumps({"version": VERSION, **table}, ensure_ascii=False, separators=(",", ":"))
    data = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
    with contextlib.suppress(OSError):
        write_whole(file, data)
