"""The parts of a conversation around a summary, its text, and what of a model's reply is taken for it."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from agent.core import trimming
from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agent.core.model import Reply
from agent.core.outside_text import fenced
from agent.core.trimming import cut
from agent.core.worklog import BEGINNING, NOTES


def answered(messages: Sequence[Message]) -> int:
    """How many messages there are up to the last reply; 0 without any."""
    places = [place for place, one in enumerate(messages) if isinstance(one, AssistantMessage)]
    return places[-1] + 1 if places else 0


def tail_start(messages: Sequence[Message]) -> int:
    """Where begins what has to stay: calls with results that are not answered, or what a person said."""
    end = answered(messages)
    last = messages[end - 1] if end else None
    return end - 1 if isinstance(last, AssistantMessage) and last.tool_calls else end


def tail_starts(messages: Sequence[Message], turn_start: int | None) -> list[int]:
    """Where what stays behind a summary may begin, the longest first; none if there is nothing to sum up.

    What was said in a turn before that of `turn_start`, and never answered, may be what is too long.
    """
    begun, unread = turn_start or 0, tail_start(messages)
    said = any(isinstance(one, UserMessage) for one in messages[:begun])
    return [*([unread] if unread else []), *([begun] if said and begun > unread else [])]


def said_in(message: Message) -> list[str]:
    """What a person or the model says in a message, also in the call that closes a turn."""
    if isinstance(message, AssistantMessage):
        return [message.text, *(str(call.arguments.get("answer", "")) for call in message.tool_calls)]
    return [message.text] if isinstance(message, UserMessage) else []


def tail_from(messages: Sequence[Message], start: int) -> list[Message]:
    """The messages from `start` on; thoughts only of the last reply, which templates may want."""
    tail = list(messages[start:])
    return [*trimming.without_thoughts(tail[:-1]), *tail[-1:]] if len(tail) > 2 else tail


def opening_of(messages: Sequence[Message]) -> list[Message]:
    """What stands before the first reply, without an earlier summary."""
    opening: list[Message] = []
    for message in messages:
        if not isinstance(message, SystemMessage | UserMessage) or BEGINNING in message.text:
            break
        opening.append(message)
    return opening


def is_summary(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.text.startswith(BEGINNING)


def shorter_text(message: Message, characters: int) -> Message:
    return replace(message, text=cut(message.text, characters)) if len(message.text) > characters else message


def tail_as_text(tail: Sequence[Message], notes: str, characters: int) -> tuple[list[Message], str]:
    """Calls that are too large to stay become words; what a person said stays."""
    results = [
        "\n".join(filter(None, [f"Result of {one.tool_name}:", fenced(cut(one.text, characters)), one.note]))
        for one in tail
        if isinstance(one, ToolMessage)
    ]
    said: list[Message] = [one for one in tail if isinstance(one, UserMessage)]
    return said, "\n".join(filter(None, [notes, *results]))


def summary_text(facts: str, notes: str, cue: str) -> str:
    told = f"{NOTES}\n{notes}" if notes else ""
    return "\n".join(filter(None, [BEGINNING, facts, told, cue]))


def notes_of(reply: Reply) -> tuple[str, str]:
    """What the model noted, or why there is nothing."""
    if reply.stop_reason == "cancelled":
        return "", "interrupted"
    if reply.error:
        return "", reply.error
    if reply.stop_reason == "repetition":
        return "", "the model repeated itself instead of summing up"
    notes = answer_in(reply)
    return (notes, "") if notes else ("", "the model gave no summary")


def answer_in(reply: Reply) -> str:
    """What was said, out of the call that a constrained reply is, also out of one that was cut short."""
    answers = [str(call.arguments.get("answer", "")) for call in reply.message.tool_calls]
    text = "" if any(call.in_text for call in reply.message.tool_calls) else reply.message.text
    if not answers and text.lstrip().startswith("{"):
        text = _begun_answer(text)
    elif reply.problem and reply.stop_reason != "length":
        text = ""
    return (next(filter(None, answers), "") or text).strip()


def _begun_answer(text: str) -> str:
    """The answer in a call that was cut short by the limit of tokens."""
    found = re.search(r'"answer"\s*:\s*"', text)
    if found is None:
        return ""
    begun = text[found.end() :]
    for end in range(len(begun), max(0, len(begun) - 8), -1):
        try:
            return str(json.loads(f'"{begun[:end]}"'))
        except ValueError:
            continue
    return ""
