"""Where in a conversation each turn begins, so that a person can go back to before one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.core.compaction import CAUSE
from agent.core.messages import Message
from agent.session.transcript import messages_in


def marks_in(records: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """For each turn that is still in the conversation: how many messages there were before it.

    Turns are counted from 1 over the whole session file, those that a person has taken back included. A
    `history` record says itself which turns its messages have.
    """
    marks: dict[int, int] = {}
    turn = messages = 0
    for record in records:
        kind = record.get("type")
        if kind == "turn_started":
            turn += 1
            marks[turn] = messages
        elif kind == "message":
            messages += 1
        elif kind == "history" and isinstance(record.get("messages"), list):
            messages = len(record["messages"])
            marks = _marks_of(record.get("turns"), messages)
    return marks


def summed_up(
    marks: Mapping[int, int], messages: Sequence[Message], kept_from: int
) -> dict[int, tuple[Message, ...]]:
    """What was said before each turn that a compaction takes out of the conversation."""
    return {turn: tuple(messages[:mark]) for turn, mark in marks.items() if mark < kept_from}


def summed_up_in(records: Sequence[Mapping[str, Any]]) -> dict[int, tuple[Message, ...]]:
    """The same for all compactions that a session file tells about, as far as they were not taken back."""
    earlier: dict[int, tuple[Message, ...]] = {}
    for place, record in enumerate(records):
        kind = record.get("type")
        if kind == "rewound" and record.get("what") != "files":
            back_to = record.get("to_turn", 0)
            earlier = {turn: one for turn, one in earlier.items() if turn < back_to}
        if kind != "history":
            continue
        left = marks_in(records[: place + 1])
        if record.get("cause") == CAUSE:
            messages = messages_in(records[:place])
            gone = {turn: mark for turn, mark in marks_in(records[:place]).items() if turn not in left}
            earlier |= summed_up(gone, messages, len(messages) + 1)
        earlier = {turn: one for turn, one in earlier.items() if turn not in left}
    return earlier


def _marks_of(turns: Any, messages: int) -> dict[int, int]:
    """The marks of a `history` record, as `[turn, messages before it]`; what cannot be right is left out."""
    marks: dict[int, int] = {}
    for pair in turns if isinstance(turns, list) else ():
        is_pair = isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, int) for one in pair)
        if is_pair and 0 <= pair[1] <= messages:
            marks[pair[0]] = pair[1]
    return marks
