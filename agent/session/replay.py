"""Recorded events as events again, to show an old conversation as it was."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, get_args

from agent.core.events import Event, Rewound, SessionStarted, TurnStarted
from agent.core.stats import StepStats
from agent.core.tool import FileDiff

_CLASSES: dict[str, type] = {kind.__dataclass_fields__["type"].default: kind for kind in get_args(Event)}


def events_in(records: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    """The events among the records of a session file; what is not understood is passed over."""
    for record in records:
        event = event_from(record)
        if event is not None:
            yield event


def still_there(events: Iterable[Event]) -> list[Event]:
    """The events without those of turns that a person has taken back."""
    kept: list[Event] = []
    begins: dict[int, int] = {}
    turn = 0
    for event in events:
        if isinstance(event, TurnStarted):
            turn += 1
            begins[turn] = len(kept)
        elif isinstance(event, Rewound) and event.what != "files" and event.to_turn in begins:
            at = begins[event.to_turn]
            # A server that came up during such a turn is still the one of this session.
            kept[at:] = [one for one in kept[at:] if isinstance(one, SessionStarted)]
            begins = {number: at for number, at in begins.items() if number < event.to_turn}
        kept.append(event)
    return kept


def event_from(record: Mapping[str, Any]) -> Event | None:
    """The event that `agent.core.events.to_record` made this of; None for anything else."""
    kind = _CLASSES.get(str(record.get("type")))
    if kind is None:
        return None
    known = {field.name for field in fields(kind)}
    values = {name: value for name, value in record.items() if name in known}
    try:
        if "stats" in values:
            values["stats"] = stats_from(values["stats"])
        if "diffs" in values:
            values["diffs"] = tuple(
                FileDiff(diff["path"], diff["before"], diff["after"]) for diff in values["diffs"]
            )
        values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return kind(**values)
    except (KeyError, TypeError, ValueError):
        return None


def stats_from(record: Mapping[str, Any]) -> StepStats:
    """The figures of a step; fields of later versions are left out."""
    known = {field.name for field in fields(StepStats)}
    values: dict[str, Any] = {}
    for name, value in record.items():
        if name in known:
            values[name] = tuple(value) if isinstance(value, list) else value
    return StepStats(**values)
