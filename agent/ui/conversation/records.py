"""Lines of a session file as events again, so that a resumed session is drawn by the same code."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, get_args

from agent.core.events import Event
from agent.core.stats import StepStats
from agent.core.tool import FileDiff


@cache
def _kinds() -> dict[str, tuple[type, frozenset[str]]]:
    kinds: dict[str, tuple[type, frozenset[str]]] = {}
    for kind in get_args(Event):
        names = {entry.name: entry for entry in fields(kind)}
        kinds[str(names["type"].default)] = (kind, frozenset(names))
    return kinds


def event_of(record: Mapping[str, Any]) -> Event | None:
    """The event that a record was made of; None for other records and for what cannot be read."""
    known = _kinds().get(str(record.get("type", "")))
    if known is None:
        return None
    kind, names = known
    values = {name: value for name, value in record.items() if name in names and name != "type"}
    try:
        if "stats" in values:
            values["stats"] = StepStats(**values["stats"])
        if "diffs" in values:
            values["diffs"] = tuple(FileDiff(**diff) for diff in values["diffs"])
        if "arguments" in values and not isinstance(values["arguments"], Mapping):
            return None
        return kind(**values)
    except TypeError:
        return None
