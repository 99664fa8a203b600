"""No request takes more than the window of its slot."""

import pytest

from agent.core.messages import AssistantMessage, SystemMessage, UserMessage
from agent.llm.protocol import NativeProtocol
from agent.llm.window import LEAST_REPLY_TOKENS
from tests.conftest import StartEngine, StartServer
from tests.llm.conftest import Connect
from tests.llm.rig import QUESTION

COUNTS = ("/v1/chat/completions/input_tokens", "/apply-template", "/tokenize")


def long_question(words: int) -> list[SystemMessage | UserMessage]:
    return [SystemMessage("Be brief."), UserMessage("word " * words)]


async def test_short_prompt_is_sent_without_a_question(scripted_server: StartServer, connect: Connect):
    server = scripted_server("Fine.")
    await connect(server).ask(max_tokens=500)
    assert [request.path for request in server.requests] == ["/v1/chat/completions"]
    assert server.chats[0].body["max_tokens"] == 500


async def test_reply_is_bounded_to_what_the_window_has_left(scripted_server: StartServer, connect: Connect):
    server = scripted_server("Fine.", n_ctx=4096)
    await connect(server).ask(long_question(1_500), max_tokens=2_000)
    [chat] = server.chats
    assert chat.prompt_tokens + chat.body["max_tokens"] == 4096
    assert server.requests[0].path == COUNTS[0]


async def test_prompt_without_room_for_a_reply_is_not_sent(scripted_server: StartServer, connect: Connect):
    server = scripted_server("Fine.", n_ctx=4096)
    reply = await connect(server).ask(long_question(1_980), max_tokens=2_000)
    assert (reply.stop_reason, reply.window) == ("overflow", 4096)
    assert "do not fit into the context window of 4096 tokens" in reply.error
    assert server.chats == []


async def test_short_reply_needs_no_more_room_than_it_asks_for(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server("Fine.", n_ctx=4096)
    reply = await connect(server, NativeProtocol([])).ask(long_question(1_980), max_tokens=16)
    assert server.chats[0].prompt_tokens > 4096 - LEAST_REPLY_TOKENS
    assert reply.message.text == "Fine."


async def test_grown_conversation_is_measured_by_what_the_server_counted(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server("One.", "Two.", n_ctx=4096)
    client = connect(server)
    history = long_question(700)
    first = await client.ask(history, max_tokens=64)
    asked = len(server.requests)
    await client.ask([*history, first.message, UserMessage("And now?")], max_tokens=64)
    assert [request.path for request in server.requests[asked:]] == ["/v1/chat/completions"]


async def test_older_servers_are_asked_for_the_template_and_its_tokens(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server("Fine.", n_ctx=4096, missing=(COUNTS[0],))
    await connect(server).ask(long_question(1_500), max_tokens=2_000)
    [chat] = server.chats
    assert [request.path for request in server.requests[:3]] == list(COUNTS)
    assert chat.prompt_tokens + chat.body["max_tokens"] == 4096


async def test_server_that_cannot_count_gets_an_estimate(scripted_server: StartServer, connect: Connect):
    server = scripted_server("Fine.", n_ctx=4096, missing=COUNTS)
    await connect(server).ask(long_question(1_500), max_tokens=2_000)
    assert 0 < server.chats[0].body["max_tokens"] < 2_000


async def test_digits_and_marks_that_no_server_counts_are_no_prose(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server("Fine.", "Fine.", n_ctx=4096)
    client = connect(server, llama_fields=False)
    for text in ("word ", "0f:9;"):
        await client.ask([SystemMessage("Be brief."), UserMessage(text * 800)], max_tokens=3_500)
    prose, dense = (chat.body["max_tokens"] for chat in server.chats)
    assert dense < prose - 1_000


async def test_other_engines_are_not_asked_to_count(scripted_server: StartServer, connect: Connect):
    server = scripted_server("Fine.", n_ctx=4096)
    await connect(server, llama_fields=False).ask(long_question(1_500), max_tokens=2_000)
    assert [request.path for request in server.requests] == ["/v1/chat/completions"]


async def test_unknown_window_bounds_nothing(scripted_server: StartServer, connect: Connect):
    server = scripted_server("Fine.")
    await connect(server, context_tokens=0).ask(long_question(1_500), max_tokens=2_000)
    assert server.chats[0].body["max_tokens"] == 2_000


async def test_refused_prompt_tells_how_large_the_window_is(scripted_server: StartServer, connect: Connect):
    server = scripted_server("Fine.", n_ctx=1_000)
    client = connect(server, context_tokens=32_768)
    reply = await client.ask(long_question(1_500))
    assert (reply.stop_reason, reply.window) == ("overflow", 1_000)
    assert client.model.context_tokens == 1_000
    assert (await client.ask(QUESTION)).message == AssistantMessage("Fine.")


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ("This model's maximum context length is 4096 tokens. However, you requested 5000.", 4096),
        ("The input (9000 tokens) is longer than the model's context length (8,192 tokens).", 8192),
        ("context length exceeded", 32_768),
    ],
)
async def test_other_engines_say_it_in_words(
    other_engine: StartEngine, connect: Connect, words: str, window: int
):
    server = other_engine("vllm", complaint={"error": {"message": words, "code": 400}})
    client = connect(server.url, context_tokens=32_768, llama_fields=False, model="served/model")
    reply = await client.ask()
    assert reply.stop_reason == "overflow", reply.error
    assert client.model.context_tokens == window


async def test_a_request_is_counted_with_its_tools(scripted_server: StartServer, connect: Connect):
    server = scripted_server("Fine.")
    client = connect(server)
    counted = await client.model.count_request(QUESTION)
    await client.ask()
    assert counted == server.chats[0].prompt_tokens
    assert counted > await connect(server, NativeProtocol([])).model.count_request(QUESTION) + 50


async def test_a_request_is_estimated_with_its_tools_where_no_server_counts(
    other_engine: StartEngine, connect: Connect
):
    client = connect(other_engine("vllm", "Fine."))
    bare = connect(other_engine("vllm", "Fine."), NativeProtocol([]))
    assert await client.model.count_request(QUESTION) > await bare.model.count_request(QUESTION) + 50
