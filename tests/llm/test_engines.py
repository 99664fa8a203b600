"""Chats with engines that are no llama-server: what they are sent and refuse, and what is said of speed."""

import asyncio
from typing import Any

import pytest

from agent.core.events import Notice
from agent.core.guide import Offer
from agent.core.messages import AssistantMessage, SystemMessage, UserMessage
from agent.core.model import Reply
from agent.llm.client import ChatModel, Connection
from tests.conftest import StartEngine, StartServer
from tests.fakes.engines import EngineServer
from tests.fakes.script import Step, call
from tests.fakes.scripted_server import ScriptedServer
from tests.llm.conftest import Connect
from tests.llm.rig import QUESTION, constrained, native, reply_in

LLAMA_ONLY = {"cache_prompt", "return_progress"}


def notices(items: list[Any]) -> list[str]:
    return [item.text for item in items if isinstance(item, Notice)]


def asks(connect: Connect, server: EngineServer, protocol: Any = None, **options: Any) -> Any:
    return connect(server.url, protocol, model=server.habits.models[0], **options)


async def test_speed_is_measured_here_where_there_are_no_timings(other_engine: StartEngine, connect: Connect):
    server = other_engine("vllm", "It holds one function, and some more of it.", cached=5)
    stats = (await asks(connect, server).ask()).stats
    assert (stats.source, stats.cached_tokens, stats.draft_source) == ("measured", 5, "")
    assert stats.decode_rate is not None
    assert stats.prefill_rate is not None
    assert stats.acceptance_rate is None


async def test_acceptance_comes_from_the_metrics_of_the_engine(other_engine: StartEngine, connect: Connect):
    server = other_engine("vllm", Step(text="One two three", drafted=14, accepted=5), drafts_of=7)
    stats = (await asks(connect, server, metrics="vllm").ask()).stats
    assert (stats.drafted, stats.accepted, stats.draft_rounds) == (14, 5, 2)
    assert stats.draft_source == "engine metrics"
    assert server.paths == ["/metrics", "/v1/chat/completions", "/metrics"]


async def test_acceptance_stays_absent_while_others_are_served(other_engine: StartEngine, connect: Connect):
    step = Step(text="One two three", drafted=14, accepted=5)
    server = other_engine("vllm", step, drafts_of=7, other_tokens=90)
    stats = (await asks(connect, server, metrics="vllm").ask()).stats
    assert (stats.drafted, stats.draft_source, stats.acceptance_rate) == (0, "", None)


async def test_template_is_told_its_arguments_with_each_request(other_engine: StartEngine, connect: Connect):
    server = other_engine("vllm", "One.", "Two.")
    client = asks(connect, server, template_arguments={"enable_thinking": False})
    for _ in range(2):
        await client.ask()
    assert [body["chat_template_kwargs"] for body in server.bodies] == [{"enable_thinking": False}] * 2


async def test_server_that_takes_no_template_arguments_is_asked_without(
    other_engine: StartEngine, connect: Connect
):
    server = other_engine("vllm", "One.", "Two.", refused=("chat_template_kwargs",))
    client = asks(connect, server, template_arguments={"enable_thinking": False})
    items = await client.items()
    assert reply_in(items).message.text == "One."
    assert "chat_template_kwargs" in notices(items)[0]
    await client.ask()
    assert ["chat_template_kwargs" in body for body in server.bodies] == [True, False, False]


async def test_engine_without_metrics_answers_all_the_same(other_engine: StartEngine, connect: Connect):
    server = other_engine("vllm", "One.", "Two.")
    client = asks(connect, server, metrics="vllm")
    assert [(await client.ask()).message.text for _ in range(2)] == ["One.", "Two."]
    assert server.paths.count("/metrics") == 1


async def test_key_goes_along_to_the_metrics(other_engine: StartEngine, connect: Connect):
    step = Step(text="One two three", drafted=7, accepted=5)
    server = other_engine("vllm", step, drafts_of=7, api_key="k")
    assert (await asks(connect, server, metrics="vllm", api_key="k").ask()).stats.drafted == 7


async def test_server_that_counts_nothing_says_nothing_of_speed(other_engine: StartEngine, connect: Connect):
    stats = (await asks(connect, other_engine("bare", "One two", usage=False)).ask()).stats
    assert (stats.counted, stats.decode_rate, stats.prefill_rate) == (False, None, None)
    assert stats.decoded_tokens > 0


async def test_call_that_comes_in_one_piece_has_no_speed(other_engine: StartEngine, connect: Connect):
    server = other_engine("ollama", call("read", path="a.py"), whole_calls=True)
    reply = await asks(connect, server).ask()
    assert reply.message.tool_calls[0].arguments == {"path": "a.py"}
    assert (reply.stats.decode_rate, reply.stats.prefill_rate) == (None, None)


async def test_thoughts_are_read_by_their_other_name(other_engine: StartEngine, connect: Connect):
    reply = await asks(connect, other_engine("vllm", Step(text="One.", reasoning="Hm."))).ask()
    assert reply.message == AssistantMessage("One.", reasoning="Hm.")


async def test_refused_fields_are_left_out_with_one_notice(other_engine: StartEngine, connect: Connect):
    server = other_engine("strict", "One.", "Two.")
    client = asks(connect, server, sampling={"top_k": 20, "temperature": 0.5})

    items = await client.items()
    again = await client.items()

    assert reply_in(items).message.text == "One."
    assert notices(items) == [
        "the server does not know cache_prompt, return_progress, top_k, so it is asked without from now on"
    ]
    assert notices(again) == []
    assert len(server.bodies) == 3
    assert not server.bodies[-1].keys() & {*LLAMA_ONLY, "top_k"}
    assert server.bodies[-1]["temperature"] == 0.5
    assert server.bodies[-1]["stream_options"] == {"include_usage": True}


async def test_server_that_does_not_know_usage_in_streams_is_asked_without(
    other_engine: StartEngine, connect: Connect
):
    server = other_engine("bare", "One.", refused=("stream_options",))
    items = await asks(connect, server).items()
    assert reply_in(items).message.text == "One."
    assert "stream_options" in notices(items)[0]
    assert not reply_in(items).stats.counted


async def test_thoughts_in_the_history_are_left_out_where_they_are_refused(
    other_engine: StartEngine, connect: Connect
):
    server = other_engine("bare", "Two.", refused=("reasoning_content",))
    history = [*QUESTION, AssistantMessage("One.", reasoning="Hm."), UserMessage("And?")]
    items = await asks(connect, server).items(history)
    assert "reasoning_content" in notices(items)[0]
    assert all("reasoning_content" not in message for message in server.bodies[1]["messages"])


async def test_fields_of_llama_server_are_not_sent_to_an_engine_without_them(
    other_engine: StartEngine, connect: Connect
):
    server = other_engine("vllm", "One.")
    await asks(connect, server, llama_fields=False).ask()
    assert not server.bodies[0].keys() & LLAMA_ONLY


@pytest.mark.parametrize("kind", ["vllm", "ollama"])
async def test_server_without_tool_calls_gets_replies_bound_to_a_schema(
    kind: str, other_engine: StartEngine, connect: Connect
):
    server = other_engine(kind, call("read", path="a.py"), "unused", tools=False)
    client = asks(connect, server)
    client.model = with_way_out(server, native(), constrained())
    items = await client.items()
    await client.model.close()

    [made] = reply_in(items).message.tool_calls
    assert (made.name, made.arguments["path"], made.in_text) == ("read", "a.py", True)
    assert notices(items) == [
        "the server takes no tool calls for this model, so replies are bound to a schema instead"
    ]
    first, second = server.bodies
    assert "tools" in first
    assert "tools" not in second
    assert first["messages"][0]["content"] == "Be brief."
    assert second["messages"][0]["content"] == constrained().system_text("Be brief.")


@pytest.mark.parametrize(
    "said",
    [
        "Unable to generate parser for this template. Automatic parser generation failed: x has no builtins",
        "\n----\nWhile executing If at line 12, column 13 in source: x\nError: Function is not a bool value",
    ],
)
async def test_template_that_fails_on_the_tools_gets_replies_bound_to_a_schema(
    said: str, scripted_server: StartServer
):
    server = scripted_server({"fault": "http_500", "message": said}, call("read", path="a.py"))
    model = with_way_out(server, native(), constrained())
    items = [item async for item in model.generate(QUESTION, max_tokens=50, offer=Offer())]
    await model.close()
    assert reply_in(items).message.tool_calls[0].in_text
    assert ["tools" in chat.body for chat in server.chats] == [True, False]


async def test_server_that_binds_no_reply_gets_tools(other_engine: StartEngine, connect: Connect):
    server = other_engine("bare", call("read", path="a.py"), schemas=False)
    client = asks(connect, server)
    client.model = with_way_out(server, constrained(), native())
    system = SystemMessage(constrained().system_text("Be brief."))
    items = await client.items([system, QUESTION[1]])
    await client.model.close()

    assert reply_in(items).message.tool_calls[0].name == "read"
    assert "cannot bind replies to a schema" in notices(items)[0]
    assert server.bodies[1]["messages"][0]["content"] == "Be brief."


async def test_server_that_refuses_both_ways_is_said_to_refuse(other_engine: StartEngine, connect: Connect):
    server = other_engine("ollama", tools=False, schemas=False)
    client = asks(connect, server)
    client.model = with_way_out(server, native(), constrained())
    reply = await client.ask()
    await client.model.close()
    assert reply.stop_reason == "error"
    assert "response_format of type json_schema is not available" in reply.error


async def test_files_are_part_of_the_call_where_there_are_no_grammars(other_engine: StartEngine):
    server = other_engine("vllm", call("edit", path="a.py"))
    model = with_way_out(server, constrained(), None, grammars=False)
    offer = Offer(tools=frozenset({"edit"}), blocks=("a.py",))
    items = [item async for item in model.generate(QUESTION, max_tokens=50, offer=offer)]
    await model.close()
    assert isinstance(items[-1], Reply)
    assert "grammar" not in server.bodies[0]
    assert server.bodies[0]["response_format"]["type"] == "json_schema"


async def test_model_that_is_not_served_is_said_in_one_line(other_engine: StartEngine, connect: Connect):
    reply = await connect(other_engine("ollama", models=("qwen:7b",)).url, model="local").ask()
    assert reply.error == 'the server does not serve that model: model "local" not found'


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "Requested token count exceeds the model's maximum context length of 4096 tokens.",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
    ],
)
async def test_prompt_that_does_not_fit_is_an_overflow_in_every_engines_words(
    words: str, other_engine: StartEngine, connect: Connect
):
    reply = await asks(connect, other_engine("vllm", complaint={"object": "error", "message": words})).ask()
    assert (reply.stop_reason, reply.error) == ("overflow", words)


@pytest.mark.parametrize(
    ("complaint", "words"),
    [
        ({"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]}, "Field required"),
        ({"error": "a plain text"}, "a plain text"),
        ({"object": "error", "message": "of an older kind"}, "of an older kind"),
        ([], "HTTP 400"),
        ("words alone", "words alone"),
    ],
)
async def test_refusal_is_told_in_the_servers_words_whatever_its_form(
    complaint: Any, words: str, other_engine: StartEngine, connect: Connect
):
    items = await asks(connect, other_engine("bare", complaint=complaint)).items()
    assert words in reply_in(items).error
    assert notices(items) == []


async def test_refusal_that_names_no_field_drops_those_of_llama_server_once(
    other_engine: StartEngine, connect: Connect
):
    server = other_engine("bare", complaint={"error": {"message": "Unrecognized request argument supplied"}})
    items = await asks(connect, server).items()
    assert len(notices(items)) == 1
    assert len(server.bodies) == 2
    assert reply_in(items).stop_reason == "error"


async def test_limit_is_sent_by_the_name_that_the_server_asks_for(
    other_engine: StartEngine, connect: Connect
):
    words = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    server = other_engine("bare", complaint={"error": {"message": words}})
    items = await asks(connect, server).items()
    assert "max_completion_tokens" in notices(items)[0]
    assert server.bodies[1]["max_completion_tokens"] == 500
    assert "max_tokens" not in server.bodies[1]


def with_way_out(
    server: EngineServer | ScriptedServer, protocol: Any, other: Any, **options: Any
) -> ChatModel:
    model = server.habits.models[0] if isinstance(server, EngineServer) else "local"
    connection = Connection(base_url=server.url, api_key="", model=model, retry_seconds=0.0, **options)
    return ChatModel(
        connection,
        protocol,
        context_tokens=4096,
        sampling={},
        cancel=asyncio.Event(),
        other_protocol=other,
    )
