"""Why a request waits, and who is told."""

import asyncio
import io

import pytest

from agent.app.life_signs import LifeSigns, busy_words
from agent.app.output import RunOutput
from agent.core.events import StepStarted


@pytest.mark.parametrize(
    ("busy", "slots", "words"),
    [
        (1, 1, "the only slot of the server is busy"),
        (4, 4, "all 4 slots of the server are busy"),
        (3, 4, ""),
        (None, 1, ""),
    ],
)
def test_only_a_server_without_a_free_slot_makes_wait(busy: int | None, slots: int, words: str):
    assert busy_words(busy, slots) == words


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
