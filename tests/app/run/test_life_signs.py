"""Why a request waits, and who is told."""

import asyncio
import io
from typing import Any

import pytest

from agent.app.run.life_signs import LifeSigns
from agent.app.run.output import RunOutput
from agent.app.servers.slot_queue import tasks_at_work, waits_for
from agent.core.events import StepStarted


def slots_with(*tasks: int) -> list[dict[str, Any]]:
    """A slot for each task; 0 is no task."""
    return [{"id": n, "id_task": task, "is_processing": task > 0} for n, task in enumerate(tasks)]


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ([7], [7], "the only slot is busy with another session"),
        ([7, 8], [7, 8], "all 2 slots are busy with other sessions"),
        ([7, 8], [7, 0], ""),
        ([7], [9], ""),
        ([7], [], ""),
    ],
)
def test_only_what_somebody_else_is_still_at_makes_wait(before: list[int], now: list[int], words: str):
    assert waits_for(slots_with(*now), tasks_at_work(slots_with(*before))) == words


async def test_json_lines_stay_without_signs_of_life():
    progress, answer = io.StringIO(), io.StringIO()
    output = RunOutput("jsonl", progress=progress, answer=answer)
    output.show(StepStarted(step=1))
    before = answer.getvalue()
    beating = asyncio.ensure_future(LifeSigns(output, beat_seconds=0).run())
    for _ in range(5):
        await asyncio.sleep(0)
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    assert (progress.getvalue(), answer.getvalue()) == ("", before)
