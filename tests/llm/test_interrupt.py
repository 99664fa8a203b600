"""Streams that are ended from this side: by a person, a reader who leaves, or for going in circles."""

import asyncio

from agent.core.cancel import closing
from agent.core.events import Prefill, TextDelta
from agent.core.guide import Offer
from agent.llm.protocol import CUT_REPLY
from tests.conftest import StartServer
from tests.fakes.script import Call, Step
from tests.fakes.scripted_server import ScriptedServer
from tests.llm.conftest import Connect
from tests.llm.rig import QUESTION, reply_in, retries
from tests.patience import PATIENCE_SECONDS


def saw_the_client_leave(server: ScriptedServer) -> bool:
    [request] = server.chats
    return request.ended.wait(PATIENCE_SECONDS) and request.aborted


async def test_a_cancel_in_mid_stream_closes_the_connection(scripted_server: StartServer, connect: Connect):
    server = scripted_server({"fault": "endless", "text": "and then this and that happened "})
    client = connect(server, context_tokens=0)
    items = []

    async for item in client.model.generate(QUESTION, max_tokens=10**6, offer=Offer()):
        items.append(item)
        if isinstance(item, TextDelta):
            client.cancel.set()

    assert reply_in(items).stop_reason == "cancelled"
    text = reply_in(items).message.text
    assert text
    assert text.startswith("and then this and that"[: len(text)])
    assert reply_in(items).stats.decoded_tokens > 0
    assert reply_in(items).stats.prefill_rate is None
    assert reply_in(items).stats.source == "measured"
    assert await asyncio.to_thread(saw_the_client_leave, server)


async def test_a_cancel_before_the_first_byte_closes_the_connection(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server({"fault": "silence"})
    client = connect(server)

    asking = asyncio.ensure_future(client.ask())
    await asyncio.to_thread(server.wait_for_chats, 1)
    client.cancel.set()

    reply = await asking
    assert reply.stop_reason == "cancelled"
    assert (reply.stats.decode_rate, reply.stats.prefill_rate) == (None, None)
    assert await asyncio.to_thread(saw_the_client_leave, server)


async def test_a_cancel_while_the_server_only_pings_ends_at_once(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server({"fault": "pings"})
    client = connect(server)

    asking = asyncio.ensure_future(client.ask())
    await asyncio.to_thread(server.wait_for_chats, 1)
    client.cancel.set()

    assert (await asking).stop_reason == "cancelled"
    assert await asyncio.to_thread(saw_the_client_leave, server)


async def test_a_cancel_ends_the_wait_for_another_try(scripted_server: StartServer, connect: Connect):
    server = scripted_server({"fault": "http_500", "times": 0})
    client = connect(server, retry_seconds=3600.0)
    items = []

    async for item in client.model.generate(QUESTION, max_tokens=10, offer=Offer()):
        items.append(item)
        client.cancel.set()

    assert len(retries(items)) == 1
    assert reply_in(items).stop_reason == "cancelled"
    assert len(server.chats) == 1


async def test_a_cancel_ends_the_wait_for_a_loading_server(scripted_server: StartServer, connect: Connect):
    client = connect(scripted_server({"fault": "loading", "times": 0}), retry_seconds=3600.0)
    items = []
    async for item in client.model.generate(QUESTION, max_tokens=10, offer=Offer()):
        items.append(item)
        client.cancel.set()
    assert reply_in(items).stop_reason == "cancelled"


async def test_nothing_is_sent_after_a_cancel(scripted_server: StartServer, connect: Connect):
    server = scripted_server("One.")
    client = connect(server)
    client.cancel.set()
    assert (await client.ask()).stop_reason == "cancelled"
    assert server.chats == []


async def test_a_reader_who_leaves_closes_the_connection(scripted_server: StartServer, connect: Connect):
    server = scripted_server({"fault": "endless", "text": "one two three four five "})
    client = connect(server, context_tokens=0)

    async with closing(client.model.generate(QUESTION, max_tokens=10**6, offer=Offer())) as stream:
        async for item in stream:
            if not isinstance(item, Prefill):
                break

    assert await asyncio.to_thread(saw_the_client_leave, server)


async def test_a_reply_in_circles_is_ended_and_the_model_is_told(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server({"fault": "endless", "text": "I will now look at the file again. "})

    reply = await connect(server, context_tokens=0).ask(max_tokens=10**6)

    assert reply.stop_reason == "repetition"
    assert reply.problem.startswith("Your reply repeated itself")
    assert await asyncio.to_thread(saw_the_client_leave, server)


async def test_a_reply_beyond_every_limit_is_cut(scripted_server: StartServer, connect: Connect):
    """Some servers pass over the limit; then a model that finds no end would write for ever."""
    pieces = [{"choices": [{"delta": {"content": f"{number} "}}]} for number in range(2000)]
    reply = await connect(scripted_server({"chunks": pieces})).ask(max_tokens=20)
    assert (reply.stop_reason, reply.problem) == ("length", CUT_REPLY)


async def test_thoughts_in_circles_are_ended_too(scripted_server: StartServer, connect: Connect):
    reply = await connect(scripted_server(Step(reasoning="But wait, is that so? " * 400, text="Yes."))).ask()
    assert reply.stop_reason == "repetition"


async def test_arguments_in_circles_are_ended_too(scripted_server: StartServer, connect: Connect):
    endless = Call("edit", '{"path": "' + "a/very/deep/folder/" * 400)
    reply = await connect(scripted_server(Step(tool_calls=(endless,)))).ask(max_tokens=10**6)
    assert reply.stop_reason == "repetition"
    assert reply.message.tool_calls == ()
