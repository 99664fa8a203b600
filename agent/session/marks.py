"""Where in a conversation each turn begins, so that a person can go back to before one."""

from collections.abc import Iterable, Mapping
from typing import Any


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


def _marks_of(turns: Any, messages: int) -> dict[int, int]:
    """The marks of a `history` record, as `[turn, messages before it]`; what cannot be right is left out."""
    marks: dict[int, int] = {}
    for pair in turns if isinstance(turns, list) else ():
        is_pair = isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, int) for one in pair)
        if is_pair and 0 <= pair[1] <= messages:
            marks[pair[0]] = pair[1]
    return marks
