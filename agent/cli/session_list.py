"""The rows of `agent session list`: for a person in columns, for programs in tabs or JSON."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from agent.cli.columns import cells, fitted, in_columns

if TYPE_CHECKING:
    from agent.session.catalogue import SessionSummary

_HEAD = ("ID", "AGE", "RESULT", "FILES", "TASK")
_LEAST_TASK, _MOST_TASK = 20, 200
_UNITS = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min"))
_OLDEST_AS_AGE = timedelta(days=30)


def as_table(found: "Sequence[SessionSummary]", width: int, now: datetime) -> list[str]:
    """A head and a row for each session, at most `width` columns wide as far as the task can give way."""
    rows = [(one.id, age(one.started, now), _result(one), str(len(one.files)), "") for one in found]
    taken = max(map(cells, in_columns([_HEAD[:-1], *(row[:-1] for row in rows)]))) + 2
    room = max(_LEAST_TASK, width - taken)
    with_tasks = [(*row[:-1], fitted(_named(one, room), room)) for row, one in zip(rows, found, strict=True)]
    return in_columns([_HEAD, *with_tasks])


def as_tabs(found: "Sequence[SessionSummary]") -> list[str]:
    """A line for each session, without a head: id, start in UTC, result, number of files, task."""
    return [
        "\t".join((one.id, one.started, _result(one), str(len(one.files)), _named(one, _MOST_TASK)))
        for one in found
    ]


def as_data(one: "SessionSummary") -> dict[str, Any]:
    """What `--json` has of one session. `started` is an ISO time in UTC."""
    return {
        "id": one.id,
        "kind": one.kind,
        "started": one.started,
        "result": one.result,
        "title": one.title,
        "task": one.task,
        "profile": one.profile,
        "files": list(one.files),
        "folder": str(one.folder),
    }


def age(stamp: str, now: datetime) -> str:
    """How long ago an ISO time was, in one unit; its date where that is long ago, empty for no time."""
    try:
        started = datetime.fromisoformat(stamp)
        since = now - started
    except (ValueError, TypeError, OverflowError):
        return ""
    if since > _OLDEST_AS_AGE or since < timedelta():
        return started.strftime("%Y-%m-%d")
    return next((f"{since // unit} {name}" for unit, name in _UNITS if since >= unit), "now")


def _result(one: "SessionSummary") -> str:
    from agent.session.readable import excerpt

    return excerpt(one.result.replace("_", " "), 14)


def _named(one: "SessionSummary", characters: int) -> str:
    from agent.session.readable import excerpt

    return excerpt(one.title or one.task, characters)
