"""What programs read: one JSON object, or a line per event; and people: an answer, and nothing else."""

import json
from dataclasses import fields
from typing import get_args

import pytest

from agent.core.events import Event
from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.fakes.script import Step, call

pytestmark = pytest.mark.timeout(300)

KNOWN_TYPES = {
    field.default for event in get_args(Event) for field in fields(event) if field.name == "type"
} | {"result"}
WORK = (
    call("shell", command="echo working; rm -rf /"),
    {"fault": "http_500"},
    Step(text="Let me see.", reasoning="Hm.", tool_calls=call("glob", pattern="*").tool_calls),
    call("write", path="made.txt", content="line separator \u2028 and \x07\n"),
    call("finish", answer="First line.\nSecond\u2028line \x1b[31mred."),
)


def test_json_is_one_object_with_all_that_matters(place: Place, scripted_server: StartServer):
    place.use(scripted_server(*WORK).url)
    done = place.run("run", "-p", "Work", "--output", "json")
    [result] = done.records
    assert done.code == result["exit_code"] == 4
    assert result["type"] == "result"
    assert result["answer"] == "First line.\nSecond\u2028line \x1b[31mred."
    assert result["files_changed"] == ["made.txt"]
    assert result["session_id"] == place.sessions()[0][0]["id"]
    assert result["denied"][0].startswith("not allowed without a person: shell")
    assert "• write made.txt" in done.err


def test_json_lines_are_events_of_known_types_and_the_result_comes_last(
    place: Place, scripted_server: StartServer
):
    place.use(scripted_server(*WORK).url)
    done = place.run("run", "-p", "Work", "--output", "jsonl", "--check", "true")
    types = [record["type"] for record in done.records]
    assert set(types) <= KNOWN_TYPES
    assert types[0] == "session_started"
    assert types[-2:] == ["turn_finished", "result"]
    assert types.count("result") == 1
    assert types.count("tool_started") == types.count("tool_finished") == 3
    assert set(types) >= {"retry", "reasoning_delta", "text_delta", "check_finished", "prefill"}
    assert done.err == ""


def test_text_form_prints_the_answer_and_nothing_that_steers_a_terminal(
    place: Place, scripted_server: StartServer
):
    place.use(scripted_server(*WORK).url)
    done = place.run("run", "-p", "Work")
    assert done.out == "First line.\nSecond\\u2028line \\x1b[31mred.\n"
    assert "\x1b" not in done.err


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_error_before_a_turn_is_a_result_too(place: Place, form: str):
    place.use("http://127.0.0.1:9")
    done = place.run("run", "-p", "x", f"--output={form}")
    [result] = done.records
    error = "no server answers at http://127.0.0.1:9: Connection refused"
    assert done.code == 5
    assert result == {"type": "result", "exit_code": 5, "error": error, "hint": result["hint"]}
    assert done.err == f"agent: {error}\nhint: {result['hint']}\n"


def test_failure_in_mid_turn_is_a_result_with_what_was_done_so_far(
    place: Place, scripted_server: StartServer
):
    place.use(scripted_server(WORK[3], {"fault": "http_500", "times": 0, "message": "out of order"}).url)
    done = place.run("run", "-p", "Work", "--output", "jsonl")
    assert done.code == 5
    assert [record["type"] for record in done.records[-2:]] == ["turn_finished", "result"]
    assert done.result["files_changed"] == ["made.txt"]
    assert done.result["error"] == done.result["detail"] == "the server failed: out of order"


def test_session_holds_what_the_lines_say(place: Place, scripted_server: StartServer):
    place.use(scripted_server(*WORK).url)
    done = place.run("run", "-p", "Work", "--output", "jsonl")
    passing = {"text_delta", "reasoning_delta", "tool_call_delta", "prefill", "tool_output"}
    kept = [record for record in done.records if record["type"] not in passing]
    of_the_session_alone = {"history", "message", "assistant_message", "prompt_head"}
    stored = [record for record in place.sessions()[0][1:] if record["type"] not in of_the_session_alone]
    kept = [record for record in kept if record["type"] not in of_the_session_alone]
    assert json.loads(json.dumps(stored)) == kept


def test_a_run_without_success_ends_with_the_models_last_words_and_what_was_changed(
    place: Place, scripted_server: StartServer
):
    looks = Step(text="I will look around.", tool_calls=call("glob", pattern="*").tool_calls)
    place.use(scripted_server(looks, looks).url)
    done = place.run("run", "-p", "Work", "--max-steps", "1")
    assert (done.code, done.out) == (3, "")
    told = done.err[done.err.index("the model said last:") :].splitlines()
    assert told[1] == "  I will look around."
    assert told[2].startswith("step limit: ")
    assert told[3] == "nothing was changed"
