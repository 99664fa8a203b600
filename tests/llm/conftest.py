"""Clients that are closed again."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.llm.rig import Client

Connect = Callable[..., Client]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Connects to a server: `connect(server, protocol, sampling, api_key="k")`, see `rig.Client`."""
    clients: list[Client] = []

    def connect_to(*arguments: Any, **options: Any) -> Client:
        clients.append(Client(*arguments, **options))
        return clients[-1]

    yield connect_to
    for client in clients:
        await client.model.close()
