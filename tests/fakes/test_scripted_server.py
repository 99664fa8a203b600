"""The fake has to behave like the real server, or every test that uses it proves nothing."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import StartServer
from tests.fakes.script import Call, Step, call, constrained_text, parse_step
from tests.fakes.scripted_server import ScriptedServer
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "What is the longest river?"}]}


def post(server: ScriptedServer, body: dict[str, Any], **headers: str) -> httpx.Response:
    return httpx.post(
        f"{server.url}/v1/chat/completions", json=body, headers=headers, timeout=PATIENCE_SECONDS
    )


def events(server: ScriptedServer, body: dict[str, Any]) -> list[dict[str, Any]]:
    return list(read_events(server, body | {"stream": True, "stream_options": {"include_usage": True}}))


def read_events(server: ScriptedServer, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with httpx.stream(
        "POST", f"{server.url}/v1/chat/completions", json=body, timeout=PATIENCE_SECONDS
    ) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                yield json.loads(line.removeprefix("data: "))


def joined(chunks: list[dict[str, Any]], field: str) -> str:
    return "".join(choice["delta"].get(field) or "" for chunk in chunks for choice in chunk["choices"])


def ask_again(reply: str, question: str) -> dict[str, Any]:
    assistant = {"role": "assistant", "content": reply}
    return {"messages": [*QUESTION["messages"], assistant, {"role": "user", "content": question}]}


def test_streams_role_then_pieces_then_reason_then_usage_with_timings(scripted_server: StartServer):
    server = scripted_server(Step(text="The Nile.", reasoning="Rivers...", drafted=4, accepted=3))

    chunks = events(server, QUESTION)

    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert joined(chunks, "reasoning_content") == "Rivers..."
    assert joined(chunks, "content") == "The Nile."
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == chunks[-1]["timings"]["predicted_n"]
    assert (chunks[-1]["timings"]["draft_n"], chunks[-1]["timings"]["draft_n_accepted"]) == (4, 3)


def test_text_comes_in_pieces_of_the_length_that_is_asked_for(scripted_server: StartServer):
    chunks = events(scripted_server({"text": "The Nile, it is.", "piece_characters": 6}), QUESTION)
    pieces = [choice["delta"].get("content") for chunk in chunks for choice in chunk["choices"]]
    assert [piece for piece in pieces if piece] == ["The Ni", "le, it", " is."]


def test_timings_name_no_draft_where_none_was_made(scripted_server: StartServer):
    assert "draft_n" not in events(scripted_server("Yes."), QUESTION)[-1]["timings"]


def test_tool_call_arrives_in_pieces_of_its_arguments(scripted_server: StartServer):
    server = scripted_server(call("read", path="river.py"))

    chunks = events(server, QUESTION)

    parts = [
        part
        for chunk in chunks
        for choice in chunk["choices"]
        for part in choice["delta"].get("tool_calls", [])
    ]
    assert len(parts) > 2
    assert len(parts[0]["id"]) == 32
    assert parts[0]["function"]["name"] == "read"
    assert json.loads("".join(part["function"]["arguments"] for part in parts)) == {"path": "river.py"}
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_appended_history_is_cached_and_a_changed_beginning_is_not(scripted_server: StartServer):
    server = scripted_server("The Nile.", "Egypt.", "Nothing.")
    events(server, QUESTION)

    grown = events(server, ask_again("The Nile.", "Where does it end?"))[-1]["timings"]
    changed = events(
        server, {"messages": [{"role": "system", "content": "Be brief."}, *QUESTION["messages"]]}
    )

    assert grown["cache_n"] > server.chats[0].prompt_tokens
    assert grown["cache_n"] + grown["prompt_n"] == server.chats[1].prompt_tokens
    assert changed[-1]["timings"]["cache_n"] < 10


def test_same_prompt_again_evaluates_one_token(scripted_server: StartServer):
    server = scripted_server("One.", "Two.")
    events(server, QUESTION)
    assert events(server, QUESTION)[-1]["timings"]["prompt_n"] == 1


def test_prefill_is_reported_when_the_request_wants_progress(scripted_server: StartServer):
    chunks = events(scripted_server("Yes."), QUESTION | {"return_progress": True})
    progress = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
    assert progress[0]["processed"] == 0
    assert progress[-1]["processed"] == progress[-1]["total"]


def test_max_tokens_cuts_a_reply(scripted_server: StartServer):
    chunks = events(scripted_server("one two three four"), QUESTION | {"max_tokens": 3})
    assert joined(chunks, "content") == "one two"
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"


def test_call_becomes_json_text_when_the_reply_is_bound_to_a_schema(scripted_server: StartServer):
    branch = {"type": "object", "properties": {"tool": {"const": "read"}, "path": {"type": "string"}}}
    schema = {"type": "json_schema", "json_schema": {"schema": {"anyOf": [branch]}}}

    chunks = events(scripted_server(call("read", path="a.py")), QUESTION | {"response_format": schema})

    assert json.loads(joined(chunks, "content")) == {"tool": "read", "path": "a.py"}
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


def test_constrained_call_may_be_nested_and_carry_a_thought():
    inner = {"type": "object", "properties": {"name": {"enum": ["read"]}, "arguments": {"type": "object"}}}
    schema = {
        "type": "object",
        "properties": {"thought": {"type": "string"}, "call": {"oneOf": [inner]}},
        "required": ["thought", "call"],
    }

    text = constrained_text(schema, Call("read", {"path": "a.py"}), "Look first.")

    expected = {"thought": "Look first.", "call": {"name": "read", "arguments": {"path": "a.py"}}}
    assert text is not None
    assert json.loads(text) == expected


def test_step_can_be_made_from_the_request(scripted_server: StartServer):
    server = scripted_server(lambda body: body["messages"][-1]["content"].upper())
    assert joined(events(server, QUESTION), "content") == "WHAT IS THE LONGEST RIVER?"


def test_wrong_key_is_refused_everywhere_but_at_the_health_check(scripted_server: StartServer):
    server = scripted_server("Yes.", api_key="secret")
    assert httpx.get(f"{server.url}/health").status_code == 200
    assert httpx.get(f"{server.url}/props").status_code == 401
    assert (
        post(server, QUESTION, Authorization="Bearer wrong").json()["error"]["type"] == "authentication_error"
    )
    assert post(server, QUESTION, Authorization="Bearer secret").status_code == 200


def test_loading_server_becomes_healthy_after_as_many_checks_as_asked(scripted_server: StartServer):
    server = scripted_server(loading=2)
    assert [httpx.get(f"{server.url}/health").status_code for _ in range(3)] == [503, 503, 200]


@pytest.mark.parametrize(
    ("step", "status", "kind"),
    [
        ({"fault": "http_500"}, 500, "server_error"),
        ({"fault": "loading"}, 503, "unavailable_error"),
        ({"fault": "overflow", "n_ctx": 768}, 400, "exceed_context_size_error"),
    ],
)
def test_fault_before_the_reply_is_an_error_object_for_as_many_requests_as_asked(
    scripted_server: StartServer, step: dict[str, Any], status: int, kind: str
):
    server = scripted_server(step | {"times": 2}, "Yes.")

    answers = [post(server, QUESTION) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [status, status, 200]
    assert answers[0].json()["error"]["type"] == kind


def test_prompt_as_large_as_the_slot_overflows_without_being_scripted(scripted_server: StartServer):
    server = scripted_server("Yes.", n_ctx=8)
    error = post(server, QUESTION).json()["error"]
    assert (error["type"], error["n_ctx"]) == ("exceed_context_size_error", 8)
    assert error["n_prompt_tokens"] == server.chats[0].prompt_tokens


def test_dropped_stream_breaks_the_connection_in_the_middle(scripted_server: StartServer):
    server = scripted_server({"fault": "drop", "text": "one two three"})
    received = []
    with pytest.raises(httpx.RemoteProtocolError):
        received.extend(read_events(server, QUESTION | {"stream": True}))


def test_error_in_mid_stream_is_an_event_after_some_text(scripted_server: StartServer):
    chunks = events(scripted_server({"fault": "error_event", "text": "one two three"}), QUESTION)
    assert chunks[1]["choices"][0]["delta"] == {"content": "one"}
    assert chunks[-1]["error"]["type"] == "server_error"


def test_raw_chunks_are_sent_as_they_are(scripted_server: StartServer):
    server = scripted_server({"chunks": [{"choices": []}, ": hello\n\n", "data: [DONE]\n\n"]})
    assert (
        post(server, QUESTION | {"stream": True}).text
        == 'data: {"choices": []}\n\n: hello\n\ndata: [DONE]\n\n'
    )


def chat_connection(server: ScriptedServer) -> socket.socket:
    """A connection on which a streaming request was sent, for a client that will leave."""
    payload = json.dumps(QUESTION | {"stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(payload)}\r\n\r\n"
    client = socket.create_connection(("127.0.0.1", server.port))
    client.sendall(head.encode() + payload)
    return client


def read_until(client: socket.socket, wanted: bytes) -> None:
    received = b""
    while wanted not in received:
        received += client.recv(4096)


def test_mute_server_notices_that_the_client_left(scripted_server: StartServer):
    server = scripted_server({"fault": "silence"})
    with chat_connection(server):
        server.wait_for_chats(1)
    assert server.chats[0].ended.wait(PATIENCE_SECONDS)
    assert server.chats[0].aborted


@pytest.mark.parametrize(("fault", "first"), [("pings", b":\n\n"), ("endless", b"and")])
def test_stream_without_end_notices_that_the_client_left(
    scripted_server: StartServer, fault: str, first: bytes
):
    server = scripted_server({"fault": fault})
    with chat_connection(server) as client:
        read_until(client, first)
    assert server.chats[0].ended.wait(PATIENCE_SECONDS)
    assert server.chats[0].aborted


def test_mute_server_can_be_closed_while_a_client_waits(scripted_server: StartServer):
    server = scripted_server({"fault": "silence"})
    with chat_connection(server) as client:
        server.wait_for_chats(1)
        server.close()
        assert client.recv(4096) == b""


def test_endless_reply_ends_at_max_tokens(scripted_server: StartServer):
    chunks = events(scripted_server({"fault": "endless", "text": "la "}), QUESTION | {"max_tokens": 40})
    assert joined(chunks, "content") == "la " * 20
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"


def test_garbage_is_neither_utf8_nor_json(scripted_server: StartServer):
    body = post(scripted_server({"fault": "garbage"}), QUESTION | {"stream": True}).content
    with pytest.raises(UnicodeDecodeError):
        body.decode("utf-8")


def test_strict_server_refuses_a_history_with_malformed_arguments(scripted_server: StartServer):
    server = scripted_server("Yes.", strict=True)
    item = {"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"path": '}}
    history = [*QUESTION["messages"], {"role": "assistant", "content": "", "tool_calls": [item]}]

    answer = post(server, {"messages": history})

    assert answer.status_code == 500
    assert answer.json()["error"]["message"].startswith("Failed to parse tool call arguments as JSON")


def test_script_that_has_run_out_says_so(scripted_server: StartServer):
    assert "no more steps" in post(scripted_server(), QUESTION).text


def test_step_with_a_misspelt_field_is_refused():
    with pytest.raises(ValueError, match="a step has no tool_cals"):
        parse_step({"tool_cals": []})


def test_token_counts_agree_between_the_endpoints(scripted_server: StartServer):
    server = scripted_server("Yes.")
    prompt = httpx.post(f"{server.url}/apply-template", json=QUESTION).json()["prompt"]
    tokens = httpx.post(f"{server.url}/tokenize", json={"content": prompt}).json()["tokens"]
    counted = httpx.post(f"{server.url}/v1/chat/completions/input_tokens", json=QUESTION).json()
    assert counted["input_tokens"] == len(tokens)
    assert post(server, QUESTION).json()["usage"]["prompt_tokens"] == len(tokens)


def test_properties_tell_the_context_of_a_slot(scripted_server: StartServer):
    server = scripted_server(n_ctx=4096, total_slots=2)
    props = httpx.get(f"{server.url}/props").json()
    assert (props["default_generation_settings"]["n_ctx"], props["total_slots"]) == (4096, 2)
    assert len(httpx.get(f"{server.url}/slots").json()) == 2
    assert httpx.get(f"{server.url}/v1/models").json()["data"][0]["meta"]["n_ctx"] == 4096


def test_runs_as_a_program_and_writes_requests_down(tmp_path: Path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["Hello."]), encoding="utf-8")
    record = tmp_path / "requests.jsonl"
    command = [sys.executable, "-m", "tests.fakes.scripted_server", str(script), "--record", str(record)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        answer = httpx.post(f"{url}/v1/chat/completions", json=QUESTION)
        process.terminate()
    assert answer.json()["choices"][0]["message"]["content"] == "Hello."
    assert json.loads(record.read_text(encoding="utf-8"))["body"] == QUESTION
