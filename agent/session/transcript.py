"""The conversation itself in a session file, so that it can go on byte for byte.

Events tell people what happened; what the next request has to repeat is more exact (raw arguments, whether
a call was part of the text) and at times something else (a dropped reply is an event, but no message). So
each message is a record of its own, written when it joins the conversation. A `history` record replaces
everything before it.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from agent.core.messages import (
    AssistantMessage,
    Message,
    Picture,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

STRAY_RESULT = "(The result of a call stood here that is not in the record.)"
LOST_RESULT = "Interrupted: the program ended before this call did. Look at what it left before you go on."

_REPLY_NUMBER = re.compile(r"(?:call|text)-(\d+)")


def message_record(message: Message) -> dict[str, Any]:
    """A message as plain data, see `message_from`."""
    return {"type": "message", **_as_data(message)}


def history_record(
    messages: Sequence[Message], cause: str, marks: Mapping[int, int] | None = None
) -> dict[str, Any]:
    """All messages from now on, where a conversation is not only appended to. For `marks` see `marks_in`."""
    data = [_as_data(message) for message in messages]
    return {"type": "history", "cause": cause, "turns": sorted((marks or {}).items()), "messages": data}


def messages_in(records: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The conversation that a session file holds; what is not understood is passed over."""
    messages: list[Message] = []
    for record in records:
        kind = record.get("type")
        if kind == "message":
            messages += _understood([record])
        elif kind == "history" and isinstance(record.get("messages"), list):
            messages = _understood(record["messages"])
    return messages


def with_results(messages: Sequence[Message]) -> list[Message]:
    """The conversation with one result for every call, and none without: a kill may have come between the
    two, and of a damaged file only parts are understood. Servers refuse a history that is otherwise.
    """
    complete: list[Message] = []
    open_calls: dict[str, ToolCall] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.call_id not in open_calls:
                # Something in its place, so that marks stay right; not between a call and its results.
                complete += [] if open_calls else [UserMessage(STRAY_RESULT)]
                continue
            del open_calls[message.call_id]
        else:
            complete += _lost(open_calls.values())
            open_calls = {}
        if isinstance(message, AssistantMessage):
            open_calls = {call.id: call for call in message.tool_calls}
            complete.append(replace(message, tool_calls=tuple(map(_readable, message.tool_calls))))
        else:
            complete.append(message)
    return [*complete, *_lost(open_calls.values())]


def _readable(call: ToolCall) -> ToolCall:
    """The call with arguments that are an object to every server."""
    try:
        is_object = isinstance(json.loads(call.raw_arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    if is_object or call.in_text:
        return call
    return replace(call, raw_arguments=json.dumps(dict(call.arguments), ensure_ascii=False))


def last_reply_number(messages: Iterable[Message]) -> int:
    """The highest number in the ids that this program gave to calls, 0 without any."""
    ids = [call.id for one in messages if isinstance(one, AssistantMessage) for call in one.tool_calls]
    found = [_REPLY_NUMBER.match(name) for name in ids]
    return max((int(match[1]) for match in found if match), default=0)


def _lost(calls: Iterable[ToolCall]) -> list[Message]:
    return [ToolMessage(call.id, call.name, LOST_RESULT, is_error=True) for call in calls]


def _as_data(message: Message) -> dict[str, Any]:
    if isinstance(message, SystemMessage):
        return {"role": "system", "text": message.text}
    if isinstance(message, UserMessage):
        pictures = [asdict(picture) for picture in message.pictures]
        return {"role": "user", "text": message.text, **({"pictures": pictures} if pictures else {})}
    if isinstance(message, ToolMessage):
        return {
            "role": "tool",
            "call_id": message.call_id,
            "tool": message.tool_name,
            "text": message.text,
            "is_error": message.is_error,
            **({"note": message.note} if message.note else {}),
        }
    calls = [
        {
            "id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "raw": call.raw_arguments,
            "in_text": call.in_text,
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "text": message.text, "reasoning": message.reasoning, "calls": calls}


def _understood(records: Iterable[Any]) -> list[Message]:
    messages = []
    for record in records:
        try:
            messages.append(message_from(record))
        except (KeyError, TypeError, ValueError):
            continue
    return messages


def message_from(record: Mapping[str, Any]) -> Message:
    """The inverse of `message_record`.

    Raises:
        KeyError, TypeError, ValueError: the record is not one of ours.
    """
    role, text = record["role"], str(record["text"])
    if role == "system":
        return SystemMessage(text)
    if role == "user":
        return UserMessage(text, tuple(Picture(**picture) for picture in record.get("pictures", ())))
    if role == "tool":
        return ToolMessage(
            str(record["call_id"]),
            str(record["tool"]),
            text,
            bool(record["is_error"]),
            str(record.get("note", "")),
        )
    if role != "assistant":
        raise ValueError(f"unknown role: {role}")
    calls = tuple(
        ToolCall(
            str(call["id"]), str(call["name"]), dict(call["arguments"]), str(call["raw"]), call["in_text"]
        )
        for call in record["calls"]
    )
    return AssistantMessage(text, str(record["reasoning"]), calls)
