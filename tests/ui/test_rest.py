"""What is done between two turns."""

import asyncio

from agent.core.events import TurnFinished
from agent.core.stats import StepStats
from agent.ui.desk import Desk
from tests.ui.rig import Rig, settle

DONE = TurnFinished(reason="done", answer="fine", detail="", steps=1, stats=StepStats())


async def test_a_while_after_a_turn_there_is_time_for_what_would_be_felt_during_one():
    rested = asyncio.Event()
    rig = Rig(options={"at_rest": rested.set})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        assert not rested.is_set()

        rig.handle.emit(DONE)
        await asyncio.wait_for(rested.wait(), 60)


async def test_a_look_at_the_state_is_no_fault_at_any_moment_of_the_end():
    rig, faults = Rig(), list[Exception]()

    async def look_all_the_time(desk: Desk) -> None:
        while True:
            try:
                desk.refresh()
            except Exception as error:
                faults.append(error)
                return
            await asyncio.sleep(0)

    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        assert rig.app.desk is not None
        looking = asyncio.create_task(look_all_the_time(rig.app.desk))
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
    looking.cancel()
    assert faults == []
