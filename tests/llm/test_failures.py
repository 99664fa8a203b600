"""A server that fails: when the same request is repeated, when it is not, and what people are told."""

import asyncio
import json
import socket
from typing import Any

import pytest

from agent.core.messages import AssistantMessage, UserMessage
from agent.llm.broken_off import UNPARSED_REPLY
from tests.conftest import StartServer
from tests.fakes.script import Step
from tests.llm.conftest import Connect
from tests.llm.rig import QUESTION, failed, reply_in, retries

BROKEN = {"fault": "http_500", "message": "something broke"}


async def test_a_failing_server_is_asked_again_with_the_same_bytes_and_then_to_read_them_anew(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server(BROKEN | {"times": 2}, "One.", "Two.")
    client = connect(server)

    items = await client.items()

    assert reply_in(items).message.text == "One."
    assert [(item.attempt, item.cause) for item in retries(items)] == [
        (1, "the server failed: something broke"),
        (2, "the server failed: something broke"),
    ]
    first, second, third = (chat.body for chat in server.chats)
    assert json.dumps(first) == json.dumps(second)
    assert third == first | {"cache_prompt": False}
    await client.ask()
    assert server.chats[-1].body == first


async def test_a_server_that_keeps_failing_is_given_up(scripted_server: StartServer, connect: Connect):
    server = scripted_server(BROKEN | {"times": 0})
    items = await connect(server).items()
    assert failed(reply_in(items), "the server failed: something broke")
    assert len(server.chats) == 3


async def test_a_call_that_the_server_cannot_read_is_the_models_problem(
    scripted_server: StartServer, connect: Connect
):
    items = await connect(scripted_server({"fault": "http_500", "times": 0})).items()
    assert len(retries(items)) == 2
    assert reply_in(items).problem == UNPARSED_REPLY
    assert reply_in(items).message == AssistantMessage("")


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("drop", "was lost in the middle of a reply"),
        ("error_event", "the server failed in mid-reply: Context size has been exceeded."),
        ("garbage", "sent something that is no reply"),
    ],
)
async def test_half_a_reply_is_void_and_asked_for_again(
    scripted_server: StartServer, connect: Connect, fault: str, cause: str
):
    server = scripted_server({"fault": fault, "text": "one two three four"}, "One.")

    items = await connect(server).items()

    [retry] = retries(items)
    assert cause in retry.cause
    assert reply_in(items).message.text == "One."


async def test_error_that_a_server_tells_in_plain_words_in_mid_reply_is_told_so(
    scripted_server: StartServer, connect: Connect
):
    begun = {"choices": [{"index": 0, "delta": {"content": "One"}, "finish_reason": None}]}
    server = scripted_server(Step(chunks=(begun, {"error": "the model has crashed"})), "One.")
    [retry] = retries(await connect(server).items())
    assert retry.cause == "the server failed in mid-reply: the model has crashed"


@pytest.mark.parametrize("fault", ["drop", "garbage"])
async def test_a_server_that_never_gets_a_reply_out_is_given_up(
    scripted_server: StartServer, connect: Connect, fault: str
):
    server = scripted_server({"fault": fault, "text": "one two three four", "times": 0})
    items = await connect(server).items()
    assert failed(reply_in(items), server.url)
    assert len(server.chats) == 3


@pytest.mark.parametrize(
    "chunks",
    [
        (),
        ("data: [DONE]\n\n",),
        ({"choices": []},),
        ({"choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": None}]},),
    ],
)
async def test_a_stream_without_an_end_is_no_reply(
    scripted_server: StartServer, connect: Connect, chunks: tuple[Any, ...]
):
    server = scripted_server(Step(chunks=chunks or (": only a comment\n\n",)), "One.")
    items = await connect(server).items()
    assert retries(items)[0].cause == "the server closed the stream before the reply ended"
    assert reply_in(items).message.text == "One."


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": None},
        {"choices": 3},
        {"choices": [None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": 3}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": "a"}, {}, None, 7]}}]},
        {"choices": [{"delta": "text"}]},
        {"timings": "fast", "prompt_progress": {"total": None, "cache": "x"}, "choices": []},
        "data: 3\n\n",
        "data: []\n\n",
        'data: {"choices": [{"delta": {}}]\n\n',
        "data: \n\n",
        "event: error\ndata: what\n\n",
        "nonsense\n\n",
    ],
)
async def test_a_chunk_of_a_strange_shape_never_ends_the_session(
    scripted_server: StartServer, connect: Connect, chunk: Any
):
    server = scripted_server(Step(chunks=(chunk, "data: [DONE]\n\n")), "One.")
    assert (await connect(server).ask()).message.text == "One."


@pytest.mark.parametrize(
    "delta",
    [
        {"content": 3},
        {"content": ["One."]},
        {"reasoning_content": {"text": "Hm"}},
        {"tool_calls": [{"index": 0, "id": 7, "function": {"name": "read", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "read", "arguments": ["a"]}}]},
        {"tool_calls": "read"},
    ],
)
async def test_a_whole_reply_of_a_strange_shape_is_asked_for_again(
    scripted_server: StartServer, connect: Connect, delta: Any
):
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}
    items = await connect(scripted_server(Step(chunks=(chunk, "data: [DONE]\n\n")), "One.")).items()
    assert "sent something that is no reply" in retries(items)[0].cause
    assert reply_in(items).message.text == "One."


@pytest.mark.parametrize(
    "figures", ['"usage": "many"', '"usage": {"prompt_tokens": "many"}', '"timings": "fast"']
)
async def test_figures_of_a_strange_shape_do_not_spoil_a_reply(
    scripted_server: StartServer, connect: Connect, figures: str
):
    end = '{"choices": [{"index": 0, "delta": {"content": "One."}, "finish_reason": "stop"}], '
    reply = await connect(scripted_server(Step(chunks=(f"data: {end}{figures}}}\n\n",)))).ask()
    assert (reply.message.text, reply.stats.prompt_tokens) == ("One.", 0)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-5", '"many"', "null", "1e400"])
async def test_figures_that_are_no_numbers_count_as_nothing(
    scripted_server: StartServer, connect: Connect, value: str
):
    end = '{"choices": [{"index": 0, "delta": {"content": "One."}, "finish_reason": "stop"}], '
    timings = f'"timings": {{"predicted_n": {value}, "prompt_ms": {value}}}}}'
    reply = await connect(scripted_server(Step(chunks=(f"data: {end}{timings}\n\n",)))).ask()
    assert (reply.message.text, reply.stats.decoded_tokens, reply.stats.prompt_seconds) == ("One.", 0, 0)


async def test_a_prompt_that_does_not_fit_is_an_overflow(scripted_server: StartServer, connect: Connect):
    server = scripted_server("One.", n_ctx=16)

    items = await connect(server).items()

    reply = reply_in(items)
    assert (reply.stop_reason, retries(items)) == ("overflow", [])
    assert "exceeds the available context size (16 tokens)" in reply.error
    assert len(server.chats) == 1


async def test_a_loading_server_is_waited_for(scripted_server: StartServer, connect: Connect):
    server = scripted_server({"fault": "loading", "times": 4}, "One.")

    items = await connect(server).items()

    assert reply_in(items).message.text == "One."
    assert [item.cause for item in retries(items)] == [
        f"the server at {server.url} is still loading its model"
    ]
    assert len(server.chats) == 5


async def test_a_server_that_loads_for_ever_is_given_up(scripted_server: StartServer, connect: Connect):
    client = connect(scripted_server({"fault": "loading", "times": 0}), loading_seconds=0.0)
    assert failed(await client.ask(), "is still loading its model")


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_is_too_busy_is_waited_for(
    scripted_server: StartServer, connect: Connect, status: int
):
    busy = {"fault": "http_500", "status": status, "message": "the engine is overloaded", "times": 2}
    server = scripted_server(busy, "One.")
    items = await connect(server).items()
    assert reply_in(items).message.text == "One."
    assert [item.cause for item in retries(items)] == [
        f"the server at {server.url} takes no request now: the engine is overloaded"
    ]


@pytest.mark.parametrize("status", [408, 504, 524])
async def test_a_proxy_that_waits_no_longer_is_named_and_nothing_is_read_again(
    scripted_server: StartServer, connect: Connect, status: int
):
    server = scripted_server({"fault": "http_500", "status": status, "times": 0})
    items = await connect(server).items()
    assert failed(reply_in(items), f"waited no longer (HTTP {status}): allow requests more time there")
    assert retries(items) == []
    assert len(server.chats) == 1


async def test_a_wrong_key_is_said_in_one_line(scripted_server: StartServer, connect: Connect):
    server = scripted_server("One.", api_key="right")
    items = await connect(server, api_key="wrong").items()
    assert failed(reply_in(items), f"the server at {server.url} refused the API key")
    assert retries(items) == []
    assert "wrong" not in reply_in(items).error


async def test_an_address_without_a_chat_api_is_said_in_one_line(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server("One.")
    reply = await connect(f"{server.url}/elsewhere").ask()
    assert failed(reply, f"there is no chat completions API at {server.url}/elsewhere")


async def test_a_refused_request_shows_the_servers_reason(scripted_server: StartServer, connect: Connect):
    server = scripted_server("One.")
    items = await connect(server).items([AssistantMessage("a"), AssistantMessage("b")])
    assert failed(reply_in(items), "the server refused the request: Cannot have 2 or more assistant")
    assert retries(items) == []


async def test_a_page_of_words_from_the_server_becomes_one_short_line(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server({"fault": "http_500", "message": "line\nbreak " * 500, "times": 0})
    reply = await connect(server).ask()
    assert failed(reply, "line break line break")
    assert len(reply.error) < 400


async def test_a_server_that_is_gone_is_said_in_one_line(connect: Connect):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        items = await connect(url).items()

    assert len(retries(items)) == 2
    assert failed(reply_in(items), f"the server at {url} does not answer")


async def test_a_silent_server_is_given_up_and_not_asked_again(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server({"fault": "silence", "times": 0})

    items = await connect(server, silence_seconds=0.05).items()

    assert failed(reply_in(items), "went silent")
    assert retries(items) == []
    await asyncio.to_thread(server.wait_for_chats, 1)
    assert len(server.chats) == 1


async def test_a_stream_that_stalls_is_given_up_and_not_asked_again(
    scripted_server: StartServer, connect: Connect
):
    def stall(_: Any) -> Step:
        return Step(fault="pings", times=0)

    server = scripted_server(stall)
    # The pings come every 0.05 s: shorter patience than that is a stall after the first byte.
    items = await connect(server, silence_seconds=0.01).items()

    assert failed(reply_in(items), "went silent")
    await asyncio.to_thread(server.wait_for_chats, 1)
    assert len(server.chats) == 1


async def test_malformed_arguments_stay_out_of_the_history_of_a_strict_server(
    scripted_server: StartServer, connect: Connect
):
    malformed = {"tool_calls": [{"name": "read", "arguments": '{"path": "a.py'}]}
    line_break = {"tool_calls": [{"name": "read", "arguments": '{"path": "a\nb.py"}'}]}
    client = connect(scripted_server(malformed, line_break, "Fine.", strict=True))

    reply = await client.ask()
    assert reply.message.tool_calls == ()
    history = [*QUESTION, UserMessage(reply.problem)]
    reply = await client.ask(history)
    assert reply.message.tool_calls[0].arguments == {"path": "a\nb.py"}

    assert (await client.ask([*history, reply.message, UserMessage("Go on.")])).message.text == "Fine."


async def test_a_client_works_again_after_a_failure(scripted_server: StartServer, connect: Connect):
    client = connect(scripted_server({"fault": "drop", "text": "a b c d", "times": 3}, "One."))
    assert failed(await client.ask(), "was lost")
    assert (await client.ask()).message.text == "One."
