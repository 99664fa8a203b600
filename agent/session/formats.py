"""The formats of session files, and how older ones are brought up to date.

| format | what is different |
|---|---|
| 1 | a run that nobody watched has events only |
| 2 | every session has its messages word for word, as `message` and `history` records |

Files are only appended to, so an old one is not rewritten: when it is opened to go on, a `history` record
with what its events tell is added, and from there on it is like a new one. Kinds of records and fields that
a reader does not know are passed over, and need no new format.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.core.errors import UsageError
from agent.core.messages import AssistantMessage, Message, SystemMessage, UserMessage
from agent.core.outside_text import fenced
from agent.session.lines import parse_line

FORMAT_VERSION = 2
_HEADER_BYTES = 8 * 1024 * 1024


def require_known_format(events: Path) -> None:
    """Makes sure that a session file is none of a later version, which would be damaged by going on.

    Raises:
        UsageError: it is.
    """
    try:
        with events.open("rb") as file:
            header = parse_line(file.readline(_HEADER_BYTES)) or {}
    except OSError:
        return  # whoever reads it says what is wrong
    found = header.get("format")
    if isinstance(found, int) and found > FORMAT_VERSION:
        raise UsageError(
            f"session {events.parent.name} was recorded by a later version (format {found})",
            "update agent to go on with it; `agent session show` still shows what can be read",
        )


def messages_from_events(records: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The conversation of a session of format 1 that nobody watched, as far as its events tell it.

    Results are told as text, because the calls that they belong to are not known exactly.
    """
    messages: list[Message] = []
    for record in records:
        kind = record.get("type")
        if kind == "turn_started":
            messages = [SystemMessage("")]
        elif kind == "user_message":
            messages.append(UserMessage(str(record.get("text", ""))))
        elif kind == "assistant_message":
            text = str(record.get("text", ""))
            messages.append(AssistantMessage(text or "(a tool call)", str(record.get("reasoning", ""))))
        elif kind == "tool_finished":
            result = fenced(str(record.get("text", "")))
            messages.append(UserMessage(f"Result of {record.get('tool', '')}:\n{result}"))
        elif kind == "compaction_finished" and record.get("summary"):
            messages = [*messages[: 2 if record.get("opening_kept", True) else 1]]
            messages.append(UserMessage(str(record["summary"])))
    return messages if len(messages) > 1 else []
