"""Blocking work beside the event loop."""

import asyncio
import queue
import threading

import pytest

from agent.app.background import in_background, start_in_background
from tests.patience import PATIENCE_SECONDS


async def test_result_and_error_come_back():
    assert await in_background(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        await in_background(lambda: 1 // 0)


def test_work_that_nobody_waits_for_holds_up_no_end():
    let_go, ended = threading.Event(), threading.Event()

    def work() -> None:
        let_go.wait()
        ended.set()

    async def lose_patience() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await in_background(work)

    asyncio.run(lose_patience())  # would wait for the thread for ever if it were one of the loop's pool
    let_go.set()
    assert ended.wait(PATIENCE_SECONDS)


def test_a_fault_is_told_although_nobody_waits_for_the_result(monkeypatch: pytest.MonkeyPatch):
    told: queue.Queue[object] = queue.Queue()
    monkeypatch.setattr(threading, "excepthook", lambda fault: told.put(fault.exc_type))
    start_in_background(lambda: 1 // 0)
    assert told.get(timeout=30) is ZeroDivisionError
