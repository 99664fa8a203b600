"""Events on their way to a front that may be slow."""

import asyncio

from agent.app.chat.outbox import Outbox
from agent.core.events import Event, Notice, Prefill, StepStarted, TextDelta, ToolOutput


async def drained(outbox: Outbox) -> list[Event]:
    outbox.close()
    return [event async for event in outbox.events()]


async def test_deltas_that_nobody_has_read_yet_become_one():
    outbox = Outbox()
    for text in "abc":
        outbox.put(TextDelta(text=text))
    outbox.put(StepStarted(step=1))
    outbox.put(TextDelta(text="d"))
    assert await drained(outbox) == [TextDelta(text="abc"), StepStarted(step=1), TextDelta(text="d")]


async def test_output_of_different_calls_stays_apart_and_the_last_progress_counts():
    outbox = Outbox()
    outbox.put(Prefill(total=9, cached=0, processed=1))
    outbox.put(Prefill(total=9, cached=0, processed=5))
    outbox.put(ToolOutput(call_id="a", text="1"))
    outbox.put(ToolOutput(call_id="a", text="2"))
    outbox.put(ToolOutput(call_id="b", text="3"))
    assert await drained(outbox) == [
        Prefill(total=9, cached=0, processed=5),
        ToolOutput(call_id="a", text="12"),
        ToolOutput(call_id="b", text="3"),
    ]


async def test_whoever_makes_events_waits_for_a_front_that_reads_and_for_no_other():
    outbox = Outbox(most_waiting=2)
    for number in range(5):
        outbox.put(Notice(text=str(number)))
    await outbox.room()
    events = outbox.events()
    assert await anext(events) == Notice(text="0")
    waiting = asyncio.ensure_future(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    for _ in range(3):
        await anext(events)
    await waiting


async def test_a_hundred_thousand_deltas_cost_one_event():
    outbox = Outbox()
    for _ in range(100_000):
        outbox.put(TextDelta(text="token "))
    [event] = await drained(outbox)
    assert event == TextDelta(text="token " * 100_000)
