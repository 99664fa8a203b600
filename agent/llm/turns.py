"""What a chat template refuses about the messages of a request, learnt and then kept to.

Most templates take messages as they come. Some want a reply between a result and the next words of a
person's, some only one call in a reply, ids of calls in a form of their own, or none of their marks in a
reply. They refuse the whole request otherwise (HTTP 400 or 500), and so each one after it.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.control_tokens import disarmed
from agent.core.messages import INTERRUPTED
from agent.llm.failures import Failure

# Mistral and its relatives; Llama 3.x: "This model only supports single tool-calls at once!".
_MUST_ALTERNATE = re.compile(r"roles must alternate|must alternate user", re.IGNORECASE)
_ONE_CALL = re.compile(
    r"single tool-?calls? at once|only (?:supports? )?(?:one|a single) tool", re.IGNORECASE
)
# Mistral Nemo and Small 3.2. Their own ids are of that form; those of another model or server are not.
_SHORT_IDS = re.compile(r"tool call ids? should be alphanumeric strings with length 9", re.IGNORECASE)
_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
# gpt-oss, of a reply or thoughts in which the server's parser left some.
_NO_MARKS = re.compile(r"containing <\|channel\|> tags", re.IGNORECASE)

Record = Mapping[str, Any]


class TurnHabits:
    """What is known of the template behind a server. Nothing is changed before it has refused something."""

    def __init__(self) -> None:
        self._alternates = False
        self._one_call = False
        self._short_ids = False
        self._no_marks = False

    def learn(self, failure: Failure) -> str:
        """One line for people on what changes from now on; empty where the failure teaches nothing."""
        if not self._alternates and _MUST_ALTERNATE.search(failure.said):
            self._alternates = True
            return "the model's chat template wants a reply before each new text, so one is put in between"
        if not self._one_call and _ONE_CALL.search(failure.said):
            self._one_call = True
            return "the model's chat template takes one call in a reply, so several are shown one by one"
        if not self._short_ids and _SHORT_IDS.search(failure.said):
            self._short_ids = True
            return "the model's chat template wants ids of nine characters, so calls are given such"
        if not self._no_marks and _NO_MARKS.search(failure.said):
            self._no_marks = True
            return "the model's chat template takes none of its marks in a reply, so they are made plain text"
        return ""

    def arranged(self, wire: Sequence[Record]) -> list[Record]:
        """The messages of a request in an order and a form that the template takes."""
        records = _one_by_one(wire) if self._one_call else list(wire)
        records = _alternating(records) if self._alternates else records
        records = [_with_short_ids(record) for record in records] if self._short_ids else records
        return [_without_marks(record) for record in records] if self._no_marks else records


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


def _with_short_ids(record: Record) -> Record:
    """With ids of nine letters and digits, the same each time."""
    if "tool_call_id" in record:
        return {**record, "tool_call_id": _short(record["tool_call_id"])}
    if calls := record.get("tool_calls"):
        return {**record, "tool_calls": [{**call, "id": _short(call["id"])} for call in calls]}
    return record


def _short(call_id: str) -> str:
    if _SHORT_ID.fullmatch(call_id):
        return call_id
    return hashlib.blake2b(call_id.encode("utf-8", "replace"), digest_size=5).hexdigest()[:9]


def _without_marks(record: Record) -> Record:
    """A reply in which nothing is a mark of a template; text of others has none already."""
    if record["role"] != "assistant":
        return record
    texts = {name: record[name] for name in ("content", "reasoning_content") if record.get(name)}
    return {**record, **{name: disarmed(text) for name, text in texts.items()}}
