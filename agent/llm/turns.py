"""Who speaks when: what a chat template refuses about the order of messages, learnt and then kept to.

Most templates take messages as they come. Some want a reply between a result and the next words of a
person's, some only one call in a reply. They refuse the whole request otherwise (HTTP 400 or 500).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.messages import INTERRUPTED
from agent.llm.failures import Failure

# Mistral and its relatives; Llama 3.x: "This model only supports single tool-calls at once!".
_MUST_ALTERNATE = re.compile(r"roles must alternate|must alternate user", re.IGNORECASE)
_ONE_CALL = re.compile(
    r"single tool-?calls? at once|only (?:supports? )?(?:one|a single) tool", re.IGNORECASE
)

Record = Mapping[str, Any]


class TurnHabits:
    """What is known of the template behind a server. Nothing is changed before it has refused something."""

    def __init__(self) -> None:
        self._alternates = False
        self._one_call = False

    def learn(self, failure: Failure) -> str:
        """One line for people on what changes from now on; empty where the failure teaches nothing."""
        if not self._alternates and _MUST_ALTERNATE.search(failure.said):
            self._alternates = True
            return "the model's chat template wants a reply before each new text, so one is put in between"
        if not self._one_call and _ONE_CALL.search(failure.said):
            self._one_call = True
            return "the model's chat template takes one call in a reply, so several are shown one by one"
        return ""

    def arranged(self, wire: Sequence[Record]) -> list[Record]:
        """The messages of a request in an order that the template takes."""
        records = _one_by_one(wire) if self._one_call else list(wire)
        return _alternating(records) if self._alternates else records


def _alternating(wire: Sequence[Record]) -> list[Record]:
    """With a reply between a result and the words of a person's that follow it."""
    records: list[Record] = []
    for record in wire:
        if records and record["role"] == "user" and records[-1]["role"] == "tool":
            records.append({"role": "assistant", "content": INTERRUPTED})
        records.append(record)
    return records


def _one_by_one(wire: Sequence[Record]) -> list[Record]:
    """With each call in a reply of its own, and its result behind it."""
    results = {record["tool_call_id"]: record for record in wire if record["role"] == "tool"}
    shown: set[str] = set()
    records: list[Record] = []
    for record in wire:
        calls = record.get("tool_calls") or ()
        if record["role"] == "tool" and record["tool_call_id"] in shown:
            continue
        if len(calls) < 2 or any(call["id"] not in results for call in calls):
            records.append(record)
            continue
        for number, call in enumerate(calls):
            shown.add(call["id"])
            text = record["content"] if number == 0 else ""
            records += [{**record, "content": text, "tool_calls": [call]}, results[call["id"]]]
    return records
