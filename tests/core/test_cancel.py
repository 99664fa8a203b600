"""Waiting for something unless a person interrupts, and cleaning up behind what was interrupted."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent.core.cancel import InterruptedRunError, closing, halting, unless_cancelled
from agent.core.errors import ExitCode


async def test_work_that_gets_ready_gives_its_result():
    async def work() -> int:
        return 42

    assert await unless_cancelled(work(), asyncio.Event()) == 42


async def test_a_failure_of_the_work_is_passed_on():
    async def work() -> int:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await unless_cancelled(work(), asyncio.Event())


async def test_an_interrupt_ends_the_work_before_it_is_reported():
    cancel, cleaned = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        cancel.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    with pytest.raises(InterruptedRunError) as caught:
        await unless_cancelled(work(), cancel)

    assert cleaned.is_set()
    assert caught.value.exit_code == ExitCode.INTERRUPTED


async def test_work_is_not_begun_after_an_interrupt():
    cancel, begun = asyncio.Event(), asyncio.Event()
    cancel.set()

    async def work() -> None:
        begun.set()

    with pytest.raises(InterruptedRunError):
        await unless_cancelled(work(), cancel)
    assert not begun.is_set()


async def test_work_that_fails_while_it_is_stopped_counts_as_interrupted():
    cancel = asyncio.Event()

    async def work() -> None:
        cancel.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("cannot clean up")

    with pytest.raises(InterruptedRunError):
        await unless_cancelled(work(), cancel)


async def test_no_task_is_left_behind():
    cancel = asyncio.Event()

    async def work() -> None:
        return None

    await unless_cancelled(work(), cancel)
    async with halting(cancel, 3600):
        pass
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_halting_follows_the_persons_cancel():
    cancel = asyncio.Event()
    async with halting(cancel, None) as halt:
        assert not halt.is_set()
        cancel.set()
        await halt.wait()


async def test_halting_ends_by_itself_when_the_time_is_up():
    cancel = asyncio.Event()
    async with halting(cancel, 0.01) as halt:
        await halt.wait()
    assert not cancel.is_set()


async def test_halting_is_set_at_once_after_a_cancel():
    cancel = asyncio.Event()
    cancel.set()
    async with halting(cancel, None) as halt:
        assert halt.is_set()


async def test_a_stream_is_closed_when_its_reader_fails():
    closed = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.set()

    async def read() -> None:
        async with closing(numbers()) as stream:
            async for number in stream:
                assert number / 0

    with pytest.raises(ZeroDivisionError):
        await read()
    assert closed.is_set()
