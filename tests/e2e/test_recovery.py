"""Each fault of a model or a server has one outcome, and none stays in the history."""

import json
from typing import Any

import pytest

from benchmarks.faults import FAULTS, MADE, TASK, Fault
from tests.conftest import StartServer
from tests.e2e.conftest import Place

pytestmark = pytest.mark.timeout(300)


def poisoned(body: dict[str, Any]) -> str:
    """What is wrong with the history of a request, if anything."""
    messages = body["messages"]
    if [message["role"] for message in messages].count("system") != 1 or messages[0]["role"] != "system":
        return "not exactly one system message, first"
    open_calls: list[str] = []
    for message in messages:
        calls = message.get("tool_calls") or []
        for call in calls:
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                return "arguments that are no object"
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return "a result without its call"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return "a call without a result"
        open_calls += [call["id"] for call in calls]
        if message["role"] == "assistant" and not calls and not message["content"].strip():
            return "an empty reply"
    return "a call without a result" if open_calls else ""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_has_its_outcome(fault: Fault, place: Place, scripted_server: StartServer):
    server = scripted_server(*fault.script(), **fault.server)
    place.use(server.url)
    done = place.run("run", "-p", TASK, "--output", "jsonl", *fault.arguments)

    assert done.code == fault.exit_code, done.err
    assert fault.says in " ".join((*done.out.splitlines(), done.err))
    assert (place.workspace / "made.txt").exists() == fault.made
    if fault.made:
        assert (place.workspace / "made.txt").read_text("utf-8") == MADE
    assert not (place.workspace / "guessed.txt").exists()
    if fault.chats:
        assert len(server.chats) == fault.chats
    assert [poisoned(request.body) for request in server.chats] == [""] * len(server.chats)
    ends = [record for record in done.records if record["type"] == "turn_finished"]
    assert len(ends) == 1
