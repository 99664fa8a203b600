"""Connections that are used again, and those that a server may be closing meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agent.llm.connection import Connection
from tests.llm.conftest import Connect
from tests.llm.rig import retries

CLOSED_AFTER_SECONDS = 5
"""By llama-server, which has it from cpp-httplib."""
EVENTS = b"".join(
    b"data: %s\n\n" % event
    for event in (
        b'{"choices": [{"index": 0, "delta": {"content": "Here."}}]}',
        b'{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}',
        b"[DONE]",
    )
)
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(EVENTS) + EVENTS
)


class Server:
    """Answers chats, each connection as long as it may have more of them; `accepted` counts connections."""

    def __init__(self, requests_of_one: int) -> None:
        self.accepted = 0
        self._requests_of_one = requests_of_one

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            for _ in range(self._requests_of_one):
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.partition(b":")[2])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                await reader.readexactly(length)
                writer.write(ANSWER)
            # What comes now meets a server that is closing: it is taken, and never answered.
            await reader.read(1)
        except asyncio.IncompleteReadError:
            return  # the client went
        finally:
            writer.close()


@asynccontextmanager
async def running(server: Server) -> AsyncIterator[str]:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"


async def test_requests_one_after_the_other_share_a_connection(connect: Connect):
    server = Server(requests_of_one=3)
    async with running(server) as url:
        client = connect(url, kept_seconds=60.0, llama_fields=False)
        replies = [await client.ask() for _ in range(3)]
        await client.model.close()
    assert [reply.message.text for reply in replies] == ["Here."] * 3
    assert server.accepted == 1


async def test_a_connection_that_was_idle_too_long_is_not_used_again(connect: Connect):
    server = Server(requests_of_one=1)
    async with running(server) as url:
        client = connect(url, kept_seconds=0.0, llama_fields=False)
        items = [await client.items() for _ in range(3)]
        await client.model.close()
    assert [retries(one) for one in items] == [[]] * 3
    assert server.accepted == 3


async def test_a_request_that_meets_the_end_of_its_connection_is_made_again(connect: Connect):
    server = Server(requests_of_one=1)
    async with running(server) as url:
        client = connect(url, kept_seconds=60.0, llama_fields=False)
        await client.ask()
        items = await client.items()
        await client.model.close()
    assert ["was lost before it replied" in retry.cause for retry in retries(items)] == [True]
    assert server.accepted == 2


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "https://example.invalid"])
def test_no_connection_is_kept_as_long_as_llama_server_keeps_it(url: str):
    assert Connection(base_url=url, api_key="").kept_seconds <= CLOSED_AFTER_SECONDS / 2
