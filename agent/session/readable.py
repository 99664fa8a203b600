"""A recorded session as text for people."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_MOST_LINES = 12
_MOST_CHARACTERS = 160

Record = Mapping[str, Any]


def visible(text: str) -> str:
    """`text` without anything that a terminal would act on; line ends and tabs stay."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text)


def excerpt(text: str, characters: int) -> str:
    """The beginning of `text` on one line."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= characters else f"{line[: characters - 1]}…"


def said(record: Record) -> str:
    """What the model said to a person in a reply.

    A model that writes its calls as text says nothing else with them: a call is recorded beside it, and of
    the call that ends its work only the answer is for people.
    """
    text = str(record.get("text") or "")
    try:
        call = json.loads(text)
    except ValueError:
        return text
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
        return text
    return str(call.get("answer") or "") if call["tool"] == "finish" else ""


def describe(record: Record) -> list[str]:
    """One event as lines; none for events that tell a reader nothing."""
    kind = str(record.get("type", ""))
    if kind in _SILENT:
        return []
    write = _WRITERS.get(kind, _other)
    return [visible(line) for line in write(record)]


def _session(record: Record) -> Iterator[str]:
    yield f"session {record.get('id', '')} in {record.get('workspace', '')}"
    yield f"started {record.get('started', '')}, profile {record.get('profile') or '(none)'}"


def _user(record: Record) -> Iterator[str]:
    yield from _indented(record.get("text"), "> ", limit=None)


def _assistant(record: Record) -> Iterator[str]:
    yield from _indented(record.get("reasoning"), "~ ")
    yield from _indented(said(record), "", limit=None)


def _tool_started(record: Record) -> Iterator[str]:
    arguments = json.dumps(record.get("arguments", {}), ensure_ascii=False)
    yield f"• {record.get('tool', '')} {excerpt(arguments, _MOST_CHARACTERS)}"


def _tool_finished(record: Record) -> Iterator[str]:
    outcome = str(record.get("outcome", ""))
    why = "" if outcome == "denied" else "allowed: "
    decision = f" ({why}{record['decision']})" if record.get("decision") else ""
    yield f"  {outcome} after {_seconds(record)}{decision}"
    yield from _indented(record.get("text"), "  | ")


def _check(record: Record) -> Iterator[str]:
    verdict = "passed" if record.get("passed") else "failed"
    yield f"check {verdict} after {_seconds(record)}: {record.get('command', '')}"
    yield from _indented(record.get("text"), "  | ")


def _notice(record: Record) -> Iterator[str]:
    yield f"{record.get('level', 'info')}: {record.get('text', '')}"


def _turn_finished(record: Record) -> Iterator[str]:
    detail = f": {record['detail']}" if record.get("detail") else ""
    yield f"= {str(record.get('reason', '')).replace('_', ' ')}{detail}"


def _result(record: Record) -> Iterator[str]:
    yield f"exit code {record.get('exit_code', '?')}"
    if record.get("files_changed"):
        yield f"changed: {', '.join(map(str, record['files_changed']))}"
    if record.get("commit"):
        yield f"commit: {record['commit']}"


def _undo(record: Record) -> Iterator[str]:
    if record.get("reason") == "not finished":
        return  # another line follows, unless it was killed
    turn = f"turn {record['turn']} of " if record.get("turn") else ""
    yield f"undid {turn}session {record.get('of', '')}"
    for what in ("restored", "deleted"):
        if record.get(what):
            yield f"{what}: {', '.join(map(str, record[what]))}"


def _rewound(record: Record) -> Iterator[str]:
    yield f"went back to before turn {record.get('to_turn', '?')} ({record.get('what', '')})"
    for what in ("restored", "deleted", "left"):
        if record.get(what):
            yield f"{what}: {', '.join(map(str, record[what]))}"


def _other(record: Record) -> Iterator[str]:
    values = {key: value for key, value in record.items() if key != "type"}
    text = json.dumps(values, ensure_ascii=False) if values else ""
    yield f"{record.get('type', '(event without a type)')} {excerpt(text, _MOST_CHARACTERS)}".rstrip()


def _indented(text: object, prefix: str, limit: int | None = _MOST_LINES) -> Iterator[str]:
    lines = str(text or "").rstrip().split("\n") if text else []
    for line in lines[:limit]:
        yield f"{prefix}{line}"
    if limit is not None and len(lines) > limit:
        yield f"{prefix}… {len(lines) - limit} more lines"


def _seconds(record: Record) -> str:
    try:
        return f"{float(record.get('seconds', 0)):.1f} s"
    except (TypeError, ValueError):
        return "? s"


_SILENT = frozenset(
    {
        "turn_started",
        "asked",
        "step_started",
        "server_state",
        "session_started",
        "step_finished",
        "message",
        "history",
        "context_status",
        "prompt_head",
        "branch",
        "closed",
    }
)

_WRITERS = {
    "session": _session,
    "user_message": _user,
    "assistant_message": _assistant,
    "tool_started": _tool_started,
    "tool_finished": _tool_finished,
    "check_finished": _check,
    "notice": _notice,
    "turn_finished": _turn_finished,
    "result": _result,
    "undo": _undo,
    "rewound": _rewound,
}
