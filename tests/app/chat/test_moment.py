"""How far the running step is, and what it waits for."""

from types import SimpleNamespace
from typing import Any, cast

from agent.app.chat.live import LiveSession
from agent.app.chat.moment import Moment
from agent.app.chat.server_watch import look_at_slots_once
from agent.core.events import (
    Prefill,
    Rewound,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolFinished,
    TurnFinished,
)
from agent.core.stats import StepStats

DONE = StepFinished(step=1, stop_reason="stop", stats=StepStats())
STOPPED = TurnFinished(reason="cancelled", answer="", detail="", steps=1, stats=StepStats())


def waiting(*events: Any) -> LiveSession:
    moment = Moment()
    for event in (StepStarted(step=1), *events):
        moment.observe(event)
    return cast("LiveSession", SimpleNamespace(moment=moment, keeper=SimpleNamespace(engine=object())))


def slots(*tasks: int) -> Any:
    found = [{"id": number, "id_task": task, "is_processing": task > 0} for number, task in enumerate(tasks)]
    return lambda _engine: found


def test_the_context_fills_while_the_prompt_is_read_and_the_reply_is_written():
    moment = Moment()
    moment.observe(StepStarted(step=1))
    assert moment.tokens == 0
    moment.observe(Prefill(total=900, cached=100, processed=600))
    assert moment.tokens == 600
    moment.observe(Prefill(total=900, cached=100, processed=900))
    moment.observe(TextDelta(text="a"))
    moment.observe(TextDelta(text="b"))
    assert moment.tokens == 902
    moment.observe(DONE)
    assert moment.tokens == 0


def test_what_an_interrupted_step_has_read_stays_in_the_context():
    moment = Moment()
    for event in (StepStarted(step=1), Prefill(total=9, cached=0, processed=9), TextDelta(text="a"), STOPPED):
        moment.observe(event)
    assert (moment.tokens, moment.pieces, moment.is_silent) == (10, 0, False)
    moment.observe(Rewound(to_turn=1, what="chat"))
    assert moment.tokens == 0


def test_what_a_question_beside_the_work_has_read_is_not_in_the_context():
    moment = Moment()
    moment.observe(Prefill(total=9, cached=0, processed=9))
    moment.observe(ToolFinished(call_id="user-1", tool="btw", outcome="ok", text="So.", seconds=1.0))
    assert moment.tokens == 0


async def test_a_request_behind_that_of_another_session_says_so_until_the_model_is_heard():
    live = waiting()
    busy = await look_at_slots_once(live, look=slots(7))
    assert live.moment.waits_for == ""
    await look_at_slots_once(live, busy, look=slots(7))
    assert live.moment.waits_for == "the only slot is busy with another session"
    live.moment.observe(Prefill(total=9, cached=0, processed=1))
    assert live.moment.waits_for == ""


async def test_a_task_that_has_just_begun_may_be_our_own():
    live = waiting()
    busy = await look_at_slots_once(live, look=slots(7))
    await look_at_slots_once(live, busy, look=slots(8))
    assert live.moment.waits_for == ""


async def test_one_free_slot_is_enough():
    live = waiting()
    busy = await look_at_slots_once(live, look=slots(7, 0))
    await look_at_slots_once(live, busy, look=slots(7, 0))
    assert live.moment.waits_for == ""


async def test_nobody_is_asked_while_no_request_waits():
    asked: list[Any] = []
    live = waiting(TextDelta(text="a"))
    assert await look_at_slots_once(live, look=lambda engine: asked.append(engine) or []) == frozenset()
    assert asked == []


def test_every_piece_of_a_reply_is_counted_however_they_reach_the_screen():
    moment = Moment()
    moment.observe(StepStarted(step=1))
    for _ in range(7):
        moment.observe(TextDelta(text="a"))
    assert moment.pieces == 7
    moment.observe(DONE)
    assert moment.pieces == 0
