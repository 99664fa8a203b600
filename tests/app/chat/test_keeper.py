"""Coming to a server that does not start: who is told."""

import asyncio
from typing import Any

import pytest

from agent.app.chat.keeper import EngineKeeper
from agent.core.errors import ServerError
from agent.core.events import Event, Notice, ServerState

FAILED = ServerState(state="failed", detail="no memory")


def keeper_that_fails(told: list[Event], go: asyncio.Event) -> EngineKeeper:
    async def open_engine(_serving: Any) -> Any:
        await go.wait()
        raise ServerError("no memory", "choose a smaller model")

    serving: Any = None
    return EngineKeeper(serving, open_engine, emit=told.append, arrived=lambda _: None)


async def test_a_start_in_the_background_that_fails_says_why_and_what_to_do():
    told: list[Event] = []
    go = asyncio.Event()
    keeper = keeper_that_fails(told, go)
    keeper.start()
    go.set()
    for _ in range(10_000):
        if len(told) == 2:
            break
        await asyncio.sleep(0)
    assert told == [FAILED, Notice(text="no memory\nhint: choose a smaller model", level="error")]


async def test_a_start_that_somebody_waits_for_is_told_by_whoever_waits():
    told: list[Event] = []
    go = asyncio.Event()
    keeper = keeper_that_fails(told, go)
    waiting = asyncio.create_task(keeper.ready())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(ServerError):
        await waiting
    assert told == [FAILED]
