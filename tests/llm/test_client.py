"""What a reply looks like that a server streamed without trouble, and what was sent to get it."""

import json
from typing import Any

import pytest

from agent.core.events import Prefill, ReasoningDelta, TextDelta, ToolCallDelta
from agent.core.messages import AssistantMessage, ToolMessage, UserMessage
from tests.conftest import StartServer
from tests.fakes.script import Call, Step, call
from tests.llm.conftest import Connect
from tests.llm.rig import QUESTION, constrained, native, reply_in


def joined(items: list[Any], kind: type) -> str:
    return "".join(item.text for item in items if isinstance(item, kind))


async def test_text_streams_in_pieces_that_make_up_the_reply(scripted_server: StartServer, connect: Connect):
    items = await connect(scripted_server("It holds one function.")).items()

    assert len([item for item in items if isinstance(item, TextDelta)]) > 3
    assert joined(items, TextDelta) == "It holds one function."
    assert reply_in(items).message == AssistantMessage("It holds one function.")
    assert reply_in(items).stop_reason == "stop"
    assert reply_in(items).problem == ""


async def test_thoughts_are_kept_apart_from_the_text(scripted_server: StartServer, connect: Connect):
    items = await connect(scripted_server(Step(text="One.", reasoning="Let me see..."))).items()
    assert joined(items, ReasoningDelta) == "Let me see..."
    assert reply_in(items).message == AssistantMessage("One.", reasoning="Let me see...")


async def test_figures_come_from_the_servers_timings(scripted_server: StartServer, connect: Connect):
    server = scripted_server(Step(text="One two three", drafted=4, accepted=3))

    reply = await connect(server).ask()

    stats = reply.stats
    assert (stats.prompt_tokens, stats.cached_tokens) == (server.chats[0].prompt_tokens, 0)
    assert (stats.decoded_tokens, stats.drafted, stats.accepted) == (6, 4, 3)
    assert stats.prefill_rate == pytest.approx(1000)
    assert stats.decode_rate == pytest.approx(100)
    assert stats.source == "server"


async def test_without_a_draft_there_is_no_acceptance(scripted_server: StartServer, connect: Connect):
    reply = await connect(scripted_server("One.")).ask()
    assert (reply.stats.drafted, reply.stats.acceptance_rate) == (0, None)


async def test_a_grown_conversation_is_mostly_cached(scripted_server: StartServer, connect: Connect):
    client = connect(scripted_server("One.", "Two."))
    first = await client.ask()

    second = await client.ask([*QUESTION, first.message, UserMessage("And in b.py?")])

    assert second.stats.cached_tokens >= first.stats.context_tokens - 1
    assert client.model.used_tokens == second.stats.context_tokens


async def test_a_server_without_timings_is_measured_here(scripted_server: StartServer, connect: Connect):
    usage = {"prompt_tokens": 30, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 20}}
    chunks = (
        {"choices": [{"index": 0, "delta": {"content": "One."}, "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
        "data: [DONE]\n\n",
    )
    stats = (await connect(scripted_server(Step(chunks=chunks))).ask()).stats
    assert (stats.prompt_tokens, stats.cached_tokens, stats.decoded_tokens) == (10, 20, 4)
    assert stats.source == "measured"


async def test_the_evaluation_of_the_prompt_is_reported(scripted_server: StartServer, connect: Connect):
    server = scripted_server("One.")
    items = await connect(server).items()
    total = server.chats[0].prompt_tokens
    progress = [item for item in items if isinstance(item, Prefill)]
    assert progress[0] == Prefill(total=total, cached=0, processed=0)
    assert progress[-1] == Prefill(total=total, cached=0, processed=total)


async def test_a_native_call_is_put_together_from_its_pieces(scripted_server: StartServer, connect: Connect):
    server = scripted_server(Step(text="I look.", tool_calls=(Call("read", {"path": "a b.py", "limit": 3}),)))

    items = await connect(server).items()

    message = reply_in(items).message
    [made] = message.tool_calls
    assert (made.name, made.arguments) == ("read", {"path": "a b.py", "limit": 3})
    assert made.raw_arguments == '{"path": "a b.py", "limit": 3}'
    assert len(made.id) == 32
    assert not made.in_text
    assert reply_in(items).stop_reason == "tool_calls"
    assert joined(items, ToolCallDelta) == made.raw_arguments


async def test_several_native_calls_are_kept_apart(scripted_server: StartServer, connect: Connect):
    calls = (Call("read", {"path": "a.py"}), Call("edit", {"path": "b.py"}))
    reply = await connect(scripted_server(Step(tool_calls=calls))).ask()
    assert [(made.name, made.arguments["path"]) for made in reply.message.tool_calls] == [
        ("read", "a.py"),
        ("edit", "b.py"),
    ]
    assert len({made.id for made in reply.message.tool_calls}) == 2


def pieces_without(*missing: str) -> Step:
    """Two calls from a server that leaves out parts which others send."""
    parts = [
        {"index": 0, "id": "x", "function": {"name": "read", "arguments": '{"path":'}},
        {"index": 0, "function": {"arguments": ' "a.py"}'}},
        {"index": 1, "id": "y", "function": {"name": "edit", "arguments": '{"path": "b.py"}'}},
    ]
    kept = [{key: value for key, value in part.items() if key not in missing} for part in parts]
    deltas = [{"tool_calls": [part]} for part in kept]
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return Step(chunks=(*chunks, end, "data: [DONE]\n\n"))


@pytest.mark.parametrize("missing", [(), ("index",), ("id",), ("index", "id")])
async def test_calls_of_servers_that_number_or_name_none_are_told_apart(
    scripted_server: StartServer, connect: Connect, missing: tuple[str, ...]
):
    reply = await connect(scripted_server(pieces_without(*missing))).ask()
    calls = reply.message.tool_calls
    assert [(made.name, made.arguments["path"]) for made in calls] == [("read", "a.py"), ("edit", "b.py")]
    assert len({made.id for made in calls}) == 2
    assert all(made.id for made in calls)


async def test_arguments_that_a_server_sends_as_an_object_are_taken_as_they_are(
    scripted_server: StartServer, connect: Connect
):
    function = {"name": "read", "arguments": {"path": "é.py"}}
    delta = {"tool_calls": [{"index": 0, "id": "x", "function": function}]}
    end = {"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]}
    [made] = (await connect(scripted_server(Step(chunks=(end,)))).ask()).message.tool_calls
    assert (made.arguments, made.raw_arguments) == ({"path": "é.py"}, '{"path": "é.py"}')


async def test_calls_of_servers_that_count_anew_in_each_reply_are_told_apart(
    scripted_server: StartServer, connect: Connect
):
    client = connect(scripted_server(pieces_without(), pieces_without()))
    first = (await client.ask()).message
    results = [ToolMessage(made.id, made.name, "x = 1") for made in first.tool_calls]
    second = (await client.ask([*QUESTION, first, *results])).message
    assert [made.id for made in first.tool_calls] == ["x", "y"]
    assert len({made.id for made in (*first.tool_calls, *second.tool_calls)}) == 4


async def test_a_constrained_reply_is_a_call_and_streams_as_one(
    scripted_server: StartServer, connect: Connect
):
    items = await connect(scripted_server(call("read", path="a.py")), constrained()).items()

    message = reply_in(items).message
    [made] = message.tool_calls
    assert (made.name, made.arguments, made.in_text) == ("read", {"path": "a.py"}, True)
    assert joined(items, ToolCallDelta) == message.text
    assert not joined(items, TextDelta)


async def test_calls_and_results_go_back_as_they_came(scripted_server: StartServer, connect: Connect):
    server = scripted_server(Step(text="I look.", tool_calls=(Call("read", {"path": "a.py"}),)), "Fine.")
    client = connect(server)
    reply = await client.ask()
    [made] = reply.message.tool_calls

    await client.ask([*QUESTION, reply.message, ToolMessage(made.id, "read", "x = 1")])

    assert server.chats[1].body["messages"][2:] == [
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {
                    "id": made.id,
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "a.py"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": made.id, "content": "x = 1"},
    ]


async def test_a_constrained_call_goes_back_as_text(scripted_server: StartServer, connect: Connect):
    server = scripted_server(call("read", path="a.py"), call("finish", path="a.py"))
    client = connect(server, constrained())
    reply = await client.ask()
    [made] = reply.message.tool_calls

    await client.ask([*QUESTION, reply.message, ToolMessage(made.id, "read", "x = 1")])

    assert server.chats[1].body["messages"][2:] == [
        {"role": "assistant", "content": '{"tool": "read", "path": "a.py"}'},
        {"role": "user", "content": "Result of read:\nx = 1\n[end of result]"},
    ]
    assert server.chats[1].cached_tokens > server.chats[0].prompt_tokens


async def test_sampling_and_limits_are_sent_with_every_request(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server("One.", "Two.")
    client = connect(server, native(), {"temperature": 0.7, "top_k": 64, "min_p": 0.0})
    await client.ask(max_tokens=77)
    client.model.change_sampling(temperature=1.0)
    await client.ask(max_tokens=77)

    bodies = [chat.body for chat in server.chats]
    assert [body["temperature"] for body in bodies] == [0.7, 1.0]
    assert all((body["top_k"], body["min_p"], body["max_tokens"]) == (64, 0.0, 77) for body in bodies)
    assert all(body["cache_prompt"] and body["return_progress"] and body["stream"] for body in bodies)


async def test_neighbouring_user_messages_become_one(scripted_server: StartServer, connect: Connect):
    server = scripted_server("One.")
    await connect(server).ask([UserMessage("One"), UserMessage("Two"), UserMessage("Three")])
    assert server.chats[0].body["messages"] == [{"role": "user", "content": "One\n\nTwo\n\nThree"}]


async def test_text_without_a_utf8_form_does_not_break_the_request(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server("One.")
    await connect(server).ask([UserMessage("caf\udce9.py and \U0001f600")])
    assert server.chats[0].body["messages"][0]["content"] == "caf?.py and \U0001f600"


async def test_the_key_is_in_the_authorization_header_and_nowhere_else(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server("One.", api_key="sk-very-secret")
    await connect(server, api_key="sk-very-secret").ask()

    [request] = server.chats
    assert request.headers.pop("Authorization") == "Bearer sk-very-secret"
    assert "sk-very-secret" not in json.dumps([request.headers, request.body, request.path])


async def test_the_environment_of_other_clients_is_not_sent(
    scripted_server: StartServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-cloud")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-cloud")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-cloud")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-cloud\nX-Team: cloud")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://example.invalid")
    monkeypatch.setenv("HTTP_PROXY", "http://example.invalid:3128")
    server = scripted_server("One.", api_key="local")

    assert (await connect(server, api_key="local").ask()).message.text == "One."

    assert "cloud" not in json.dumps(server.chats[0].headers)
    assert not [name for name in server.chats[0].headers if name.lower().startswith("x-")]


async def test_all_requests_of_a_session_share_their_tools(scripted_server: StartServer, connect: Connect):
    server = scripted_server("One.", "Two.")
    client = connect(server)
    await client.ask()
    await client.ask()
    one, two = (json.dumps(chat.body["tools"]) for chat in server.chats)
    assert one == two
    assert [tool["function"]["name"] for tool in server.chats[0].body["tools"]] == ["read", "edit"]
