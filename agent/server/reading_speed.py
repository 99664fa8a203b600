"""How fast prompts were read on this machine: a small file, for the next start of a server.

It maps each reader to its last rates in tok/s, and whoever learned last stands last.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.core.whole_file import write_whole
from agent.server.model_file import ModelFile
from agent.server.profile import Profile

FILE_NAME = "reading-speeds.json"
LEAST_TOKENS = 200
"""A shorter prompt says little: its time is that of beginning."""
MOST_CACHED_TOKENS = 4096
"""Behind a long conversation reading is slower, because each token looks at all of it."""
_KEPT_RATES = 5
_KEPT_READERS = 64
_HIGHEST_RATE = 1e6


def reader_of(profile: Profile, threads: int) -> str:
    """Under what the speed is kept: what reads, with which engine and on how many threads."""
    files = [profile.target, profile.draft if profile.uses_draft_model else None]
    names = "+".join(_named(file) for file in files if file is not None)
    return f"{names} {profile.engine} threads={threads} gpu_layers={profile.gpu_layers}"


def telling_rate(evaluated: int, cached: int, seconds: float) -> float | None:
    """Tokens a second of one prompt, None where it says nothing about others.

    Args:
        evaluated: tokens that were read.
        cached: those before them that were known.
        seconds: what the server itself says that it took.
    """
    if evaluated < LEAST_TOKENS or cached > MOST_CACHED_TOKENS or seconds <= 0:
        return None
    return evaluated / seconds


def known_rate(file: Path, reader: str) -> float | None:
    """The median of the last readings in tok/s, None without any: one on a busy machine decides nothing."""
    rates = sorted(_rates(_read(file).get(reader)))
    return rates[(len(rates) - 1) // 2] if rates else None


def remember(file: Path, reader: str, rates: Sequence[float]) -> None:
    """Adds readings in tok/s, the newest last. Of many readers the one that learned longest ago is forgotten.

    Raises:
        OSError: the file cannot be written.
    """
    if not rates:
        return
    table = _read(file)
    kept = [*_rates(table.pop(reader, None)), *rates][-_KEPT_RATES:]
    table[reader] = [round(rate, 2) for rate in kept]
    newest = list(table)[-_KEPT_READERS:]
    write_whole(file, json.dumps({name: table[name] for name in newest}, indent=1) + "\n")


def _named(file: ModelFile) -> str:
    return f"{Path(file.file).name}:{file.sha256[:12]}" if file.sha256 else file.file


def _read(file: Path) -> dict[str, Any]:
    """A file that is missing or damaged remembers nothing."""
    try:
        table = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def _rates(raw: Any) -> list[float]:
    return [float(rate) for rate in raw if _is_rate(rate)] if isinstance(raw, list) else []


def _is_rate(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _HIGHEST_RATE
