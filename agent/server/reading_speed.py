"""How fast prompts were read on this machine: a small file, for the next start of a server."""

import json
import math
import time
from collections.abc import Mapping, Sequence
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


def remember(file: Path, reader: str, rates: Sequence[float], now: float | None = None) -> None:
    """Adds readings in tok/s, the newest last. What was used longest ago is forgotten.

    Raises:
        OSError: the file cannot be written.
    """
    if not rates:
        return
    table = _read(file)
    kept = [*_rates(table.get(reader)), *rates][-_KEPT_RATES:]
    at = time.time() if now is None else now
    table[reader] = {"rates": [round(rate, 2) for rate in kept], "at": round(at)}
    newest = sorted(table, key=lambda name: _at(table[name]), reverse=True)[:_KEPT_READERS]
    write_whole(file, json.dumps({name: table[name] for name in newest}, indent=1, sort_keys=True) + "\n")


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
    rates = raw.get("rates") if isinstance(raw, Mapping) else None
    return [float(rate) for rate in rates if _is_rate(rate)] if isinstance(rates, list) else []


def _is_rate(value: Any) -> bool:
    return _is_number(value) and 0 < value <= _HIGHEST_RATE


def _at(raw: Any) -> float:
    at = raw.get("at") if isinstance(raw, Mapping) else None
    return float(at) if at is not None and _is_number(at) else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
