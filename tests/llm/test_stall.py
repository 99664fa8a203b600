"""Bytes are life, whatever they say; silence is not, where nobody answers for the server's health either."""

import asyncio

from agent.llm.connection import Connection
from tests.conftest import StartServer
from tests.fakes.stream import PING_SECONDS
from tests.llm.conftest import Connect
from tests.llm.rig import failed, reply_in, retries
from tests.patience import limits


async def test_silent_server_that_answers_nothing_else_is_declared_dead(
    scripted_server: StartServer, connect: Connect
):
    for health_seconds in limits(0.05):
        server = scripted_server({"fault": "silence", "times": 0}, dies_at=1)
        items = await connect(server, stall_seconds=0.05, health_seconds=health_seconds).items()
        assert failed(reply_in(items), "went silent and does not answer /health")
        assert retries(items) == []
        await asyncio.to_thread(server.wait_for_chats, 1)
        assert len(server.chats) == 1
        try:
            await asyncio.to_thread(server.wait_for_path, "/health", 2, health_seconds)
        except TimeoutError:  # given up before the question was sent
            continue
        return
    raise AssertionError("it was not asked whether it lives")


def test_patience_with_silence_comes_to_less_than_thirty_seconds():
    patience = Connection(base_url="http://127.0.0.1:1", api_key="")
    pause = min(1.0, patience.stall_seconds)
    assert patience.stall_seconds + 2 * patience.health_seconds + pause < 30
    # Of one whose health answers: a prompt of 262,144 tokens takes so long at 20 tok/s.
    assert patience.silence_seconds > 262_144 / 20


async def test_server_without_a_process_behind_it_is_declared_dead(connect: Connect):
    """The connection stays open, as when a machine is switched off, but nobody takes another one."""
    gone = asyncio.Event()

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listener.close()
        await gone.wait()
        writer.close()

    listener = await asyncio.start_server(swallow, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    items = await connect(f"http://127.0.0.1:{port}", stall_seconds=0.05).items()
    gone.set()
    assert failed(reply_in(items), "went silent and does not answer /health")


async def test_silent_server_whose_health_answers_is_waited_for(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server({"fault": "silence", "times": 0})
    client = connect(server, stall_seconds=0.01)
    asking = asyncio.ensure_future(client.ask())
    await asyncio.to_thread(server.wait_for_path, "/health", 5)
    assert not asking.done()
    client.cancel.set()
    assert (await asking).stop_reason == "cancelled"


async def test_server_without_a_health_page_answers_all_the_same(
    scripted_server: StartServer, connect: Connect
):
    server = scripted_server({"fault": "silence", "times": 0}, missing=("/health",))
    client = connect(server, stall_seconds=0.01)
    asking = asyncio.ensure_future(client.ask())
    await asyncio.to_thread(server.wait_for_path, "/health", 5)
    assert not asking.done()
    client.cancel.set()
    await asking


async def test_comments_keep_a_stream_alive_though_its_health_is_dead(
    scripted_server: StartServer, connect: Connect
):
    for seconds in limits(1.0):  # between two comments there may be a second on a busy machine
        pings = round(1.5 * seconds / PING_SECONDS)
        server = scripted_server({"pings": pings, "text": "At last."}, dies_at=1)
        reply = await connect(server, stall_seconds=seconds, health_seconds=0.01).ask()
        if reply.message.text:
            break
    assert reply.message.text == "At last."
    assert len(server.chats) == 1
