"""What is done between two turns."""

import asyncio

from agent.core.events import TurnFinished
from agent.core.stats import StepStats
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
