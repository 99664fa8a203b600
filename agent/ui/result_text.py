"""What a service of the session answered, as text for people."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from agent.core.tool import FileDiff
from agent.ui.conversation.text import visible
from agent.ui.text import one_line


def as_text(result: Any) -> str:
    """Text as it is, rows as a table, a mapping as one line for each entry, nothing as an empty string."""
    if result is None or result is True:
        return ""
    if isinstance(result, str):
        return visible(result).strip("\n")
    if is_dataclass(result) and not isinstance(result, type):
        return as_text(asdict(result))
    if isinstance(result, Mapping):
        if isinstance(result.get("text"), str):
            return visible(result["text"]).strip("\n")
        return _pairs(result)
    if isinstance(result, Sequence):
        return _rows(result)
    return visible(str(result))


def diffs_in(result: Any) -> list[FileDiff]:
    """The diffs, where a service answered with some."""
    if isinstance(result, Mapping):
        result = result.get("diffs", ())
    if isinstance(result, Sequence) and not isinstance(result, str):
        return [item for item in result if isinstance(item, FileDiff)]
    return []


def _pairs(result: Mapping[Any, Any]) -> str:
    names = {key: str(key).replace("_", " ") for key in result}
    width = max((len(name) for name in names.values()), default=0)
    return "\n".join(f"{name.ljust(width)}  {_value(result[key])}" for key, name in names.items())


def _rows(result: Sequence[Any]) -> str:
    plain = [asdict(row) if is_dataclass(row) and not isinstance(row, type) else row for row in result]
    rows: list[Mapping[Any, Any]] = [row for row in plain if isinstance(row, Mapping)]
    if not plain:
        return "nothing"
    if len(rows) < len(plain):
        return "\n".join(_value(row) for row in plain)
    columns = list(dict.fromkeys(str(key) for row in rows for key in row))
    table = [[column.replace("_", " ") for column in columns]]
    table += [[_value(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(len(line[at]) for line in table) for at in range(len(columns))]
    return "\n".join(_joined(line, widths) for line in table)


def _joined(line: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list | tuple):
        return ", ".join(_value(item) for item in value)
    return one_line(str(value), 120)
