"""Requests with idle seconds between them, to the real server, which closes idle connections."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from agent.core.model import ModelItem
from tests.llm.rig import Client, constrained, reply_in, retries
from tests.real.rig import serving, until

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@contextlib.asynccontextmanager
async def asking(url: str, api_key: str) -> AsyncIterator[Client]:
    client = Client(url, constrained(), {"temperature": 0.0}, api_key=api_key)
    try:
        yield client
    finally:
        await client.model.close()


def is_connected(url: str) -> bool:
    """Whether this process has a connection to the server that neither end has closed."""
    port = int(url.rpartition(":")[2])
    found = psutil.Process().net_connections("tcp4")
    states = [one.status for one in found if one.raddr and one.raddr.port == port]
    return psutil.CONN_ESTABLISHED in states


async def ask_when_it_is_closed(url: str, api_key: str) -> tuple[int | None, list[ModelItem]]:
    """After a stream this server closes its connection at once, after any other answer when it was idle."""
    async with asking(url, api_key) as client:
        tokens = await client.model.count_tokens("one two three")
        assert is_connected(url)
        await asyncio.to_thread(until, lambda: not is_connected(url))
        return tokens, await client.items(max_tokens=4)


def test_the_request_after_the_server_has_closed_an_idle_connection_is_not_lost(tmp_path: Path):
    with serving("embedded-small", tmp_path) as endpoint:
        tokens, items = asyncio.run(ask_when_it_is_closed(endpoint.base_url, endpoint.api_key))
    assert tokens == 3
    assert retries(items) == []
    assert reply_in(items).stop_reason == "length"
