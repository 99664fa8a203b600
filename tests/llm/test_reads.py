"""Rests between the reads of a fast stream."""

import asyncio

from agent.llm.reads import REST_SECONDS, FullerReads


class Stream:
    """Counts the rests that are taken while events come; time passes only as told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rests: list[float] = []
        self.reads = FullerReads(lambda: self.now, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def events(self, count: int, *, per_second: float, at_once: int = 1) -> None:
        for number in range(count):
            if number % at_once == 0:
                await asyncio.sleep(0)  # the socket is empty
            self.now += 1 / per_second
            await self.reads.rest()


async def test_a_fast_stream_is_read_in_larger_bites():
    stream = Stream()
    await stream.events(2000, per_second=2000)
    assert stream.rests
    assert set(stream.rests) == {REST_SECONDS}


async def test_what_has_come_already_is_read_without_a_rest():
    stream = Stream()
    await stream.events(1000, per_second=2000, at_once=1000)
    assert set(stream.rests) == {0.0}


async def test_what_else_is_to_be_done_gets_its_turn_between_events_that_came_together():
    stream = Stream()
    turns = 0

    async def something_else() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(something_else())
    await stream.events(1000, per_second=2000, at_once=1000)
    other.cancel()
    assert turns > 20


async def test_a_slow_stream_is_read_as_it_comes():
    stream = Stream()
    await stream.events(500, per_second=40)
    assert stream.rests == []


async def test_a_short_reply_is_not_held_up():
    stream = Stream()
    await stream.events(100, per_second=2000)
    assert stream.rests == []
