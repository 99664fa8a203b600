"""What each server could do when it was measured last, to notice later that it has become slower."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from agent.core.errors import AgentError
from agent.core.whole_file import write_whole
from agent.server.record import Endpoint

FILE_NAME = "baselines.json"
_PREFERRED_SUITES = ("agent", "coding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """One server with one suite. Rates are medians in tokens per second.

    `machine` is a short text (processor or graphics card), `measured_at` an ISO time, `accept_rate`
    accepted ÷ drafted, None where nothing was drafted or nothing is known of it.
    """

    profile: str
    suite: str
    decode_rate: float
    prompt_rate: float | None
    speculation: str
    accept_rate: float | None
    machine: str
    samples: int
    measured_at: str


def key_of(endpoint: Endpoint) -> str:
    """Under what a server is remembered: its fingerprint, or its address if it was not started here."""
    return endpoint.fingerprint or f"url:{endpoint.base_url}"


def store_baseline(file: Path, fingerprint: str, baseline: Baseline) -> None:
    """Remembers a result; it replaces the former one of this server with the same suite.

    Args:
        file: `baselines.json` in the state folder; created with its folder if need be.

    Raises:
        AgentError: it cannot be written.
    """
    table = _read(file)
    suites = table.get(fingerprint)
    table[fingerprint] = {**(suites if isinstance(suites, dict) else {}), baseline.suite: asdict(baseline)}
    text = json.dumps(table, indent=1, sort_keys=True) + "\n"
    try:
        write_whole(file, text)
    except OSError as error:
        raise AgentError(f"the speed could not be remembered in {file}: {error.strerror}") from error


def baseline_for(fingerprint: str, file: Path, suite: str = "") -> Baseline | None:
    """What was measured of this server, None if nothing was.

    Without `suite`: the suite that is most like a session (`agent`, then `coding`), else the latest.
    """
    suites = _read(file).get(fingerprint)
    found = [one for raw in suites.values() if (one := _baseline(raw))] if isinstance(suites, dict) else []
    for name in (suite,) if suite else _PREFERRED_SUITES:
        for one in found:
            if one.suite == name:
                return one
    return None if suite else max(found, key=lambda one: one.measured_at, default=None)


def plain_baselines(file: Path) -> list[Baseline]:
    """What was measured of servers that draft nothing, with the suites that are most like a session first."""
    tables = [suites for suites in _read(file).values() if isinstance(suites, dict)]
    found = [one for suites in tables for raw in suites.values() if (one := _baseline(raw))]
    plain = [one for one in found if one.speculation == "none"]
    order = {name: place for place, name in enumerate(_PREFERRED_SUITES)}
    return sorted(plain, key=lambda one: order.get(one.suite, len(order)))


def _read(file: Path) -> dict[str, Any]:
    """What is remembered; a file that is missing or damaged remembers nothing."""
    try:
        table = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}


def _baseline(raw: Any) -> Baseline | None:
    if not isinstance(raw, Mapping):
        return None
    try:
        one = Baseline(**{field.name: raw[field.name] for field in fields(Baseline)})
    except KeyError:
        return None
    usable = isinstance(one.decode_rate, int | float) and one.decode_rate > 0
    return one if usable and isinstance(one.suite, str) and isinstance(one.measured_at, str) else None
