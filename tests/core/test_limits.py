"""What ends a turn that does not end by itself."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agent.core.events import StepFinished, ToolFinished, TurnFinished
from agent.core.limits import (
    AttemptLimit,
    CallLimit,
    ContextBudget,
    Guard,
    RepetitionGuard,
    SharedLimits,
    StepLimit,
    Stop,
    TimeLimit,
    TokenLimit,
    TurnState,
)
from agent.core.loop import Conversation
from agent.core.messages import ToolCall
from agent.core.model import ModelItem
from agent.core.stats import StepStats
from agent.core.tool import ToolContext, ToolResult
from tests.core.rig import FakeCheck, FakeTool, editing, of_type, services_of, turn, types, waiting
from tests.fakes.scripted_model import Answer, ScriptedModel, act, bad, call, figures, say
from tests.patience import limits


def reading(number: int) -> Any:
    return act(call("read", path=f"{number}.py"))


async def end_of(*guards: Guard, script: list[Answer], **more: Any) -> TurnFinished:
    tools = (FakeTool("read", "text"), editing())
    events = await turn(services_of(ScriptedModel(*script), *tools, guards=guards, **more))
    assert isinstance(events[-1], TurnFinished)
    return events[-1]


def different_reads(count: int) -> list[Answer]:
    return [*(reading(number) for number in range(count)), "Fine."]


async def test_the_step_limit_allows_just_that_many_steps():
    end = await end_of(StepLimit(3), script=different_reads(9))
    assert (end.reason, end.steps) == ("step_limit", 3)
    assert end.detail == "the limit of 3 steps is reached (max_steps)"


async def test_the_step_limit_counts_the_steps_of_earlier_attempts():
    assert (await end_of(StepLimit(5, used_before=3), script=different_reads(9))).steps == 2


async def test_a_turn_that_is_done_with_its_last_step_is_done():
    assert (await end_of(StepLimit(3), script=different_reads(2))).reason == "done"


async def test_an_unusable_reply_counts_as_a_step():
    assert (await end_of(StepLimit(2), script=[bad("no JSON"), bad("no JSON"), "Fine."])).steps == 2


async def test_the_attempt_limit_has_a_reason_of_its_own():
    end = await end_of(AttemptLimit(2), script=different_reads(9))
    assert (end.reason, end.steps) == ("attempt_limit", 2)


async def test_the_token_limit_counts_what_the_model_writes():
    script: list[Answer] = [act(call("read", path=str(n)), stats=figures(decoded=40)) for n in range(9)]
    end = await end_of(TokenLimit(100), script=script)
    assert (end.reason, end.steps) == ("token_limit", 3)


async def test_the_token_limit_counts_the_tokens_of_earlier_attempts():
    script: list[Answer] = [act(call("read", path=str(n)), stats=figures(decoded=40)) for n in range(9)]
    assert (await end_of(TokenLimit(100, used_before=60), script=script)).steps == 1


@pytest.mark.parametrize("limit", [TokenLimit(0), TimeLimit(0), CallLimit(0), ContextBudget(lambda: 0, 100)])
async def test_nothing_means_no_limit(limit: Guard):
    assert (await end_of(limit, script=different_reads(4))).reason == "done"


async def test_a_full_context_window_ends_the_turn_before_a_request_is_refused():
    script: list[Answer] = [
        act(call("read", path="a"), stats=figures(prompt=500, decoded=100)),
        act(call("read", path="b"), stats=figures(prompt=200, cached=600, decoded=101)),
        "Fine.",
    ]
    end = await end_of(ContextBudget(lambda: 1000, reserve_tokens=100), script=script)
    assert (end.reason, end.steps) == ("context_full", 2)
    assert end.detail == "the context window of 1000 tokens is full (901 used)"


async def test_a_dropped_reply_takes_up_no_context():
    dropped = bad("cut off")
    script: list[Answer] = [
        type(dropped)(
            message=dropped.message,
            stop_reason="length",
            stats=figures(prompt=500, decoded=450),
            problem="cut off",
        ),
        say("Fine.", figures(10)),
    ]
    assert (await end_of(ContextBudget(lambda: 1000, reserve_tokens=100), script=script)).reason == "done"


async def test_the_time_limit_ends_a_turn_between_two_steps():
    now = [0.0]

    async def slow(*_: Any) -> str:
        now[0] += 40
        return "done"

    limit = TimeLimit(60, clock=lambda: now[0])
    events = await turn(
        services_of(ScriptedModel(*different_reads(9)), FakeTool("read", slow), guards=[limit])
    )

    assert isinstance(events[-1], TurnFinished)
    assert (events[-1].reason, events[-1].steps) == ("time_limit", 2)
    assert events[-1].detail == "the limit of 60 seconds is reached (max_seconds)"
    assert limit.remaining == 0.0


def test_the_remaining_time_counts_from_the_creation():
    now = [10.0]
    limit = TimeLimit(60, clock=lambda: now[0])
    now[0] = 25.0
    assert limit.remaining == 45.0
    assert TimeLimit(0).remaining is None


async def test_the_time_limit_closes_a_stream_that_never_ends():
    async def for_ever() -> AsyncIterator[ModelItem]:
        await asyncio.Event().wait()
        yield say("never")

    for seconds in limits(0.02):
        model = ScriptedModel(for_ever)
        events = await turn(services_of(model, guards=[TimeLimit(seconds)]))
        if model.streams_closed:
            break

    assert model.streams_closed == 1
    assert types(events)[-2:] == ["step_finished", "turn_finished"]
    assert of_type(events, StepFinished)[0].stop_reason == "cancelled"
    assert of_type(events, TurnFinished)[0].reason == "time_limit"


async def test_the_time_limit_stops_a_tool_that_never_ends():
    for seconds in limits(0.02):
        started = asyncio.Event()
        conversation = Conversation()
        model = ScriptedModel(act(call("wait")))
        services = services_of(model, waiting(started), guards=[TimeLimit(seconds)])
        events = await turn(services, conversation=conversation)
        if started.is_set():
            break

    assert [event.outcome for event in of_type(events, ToolFinished)] == ["cancelled"]
    assert of_type(events, TurnFinished)[0].reason == "time_limit"
    assert len(conversation.messages) == 3


async def test_the_time_limit_stops_a_check_that_never_ends():
    class EndlessCheck(FakeCheck):
        has_begun = False

        async def at_finish(self) -> Any:
            self.has_begun = True
            await asyncio.Event().wait()

    for seconds in limits(0.02):
        verifier = EndlessCheck(True)
        model = ScriptedModel("Done.")
        events = await turn(services_of(model, guards=[TimeLimit(seconds)], verifier=verifier))
        if verifier.has_begun:
            break
    assert verifier.has_begun
    assert of_type(events, TurnFinished)[0].reason == "time_limit"


async def test_a_person_who_interrupts_is_not_mistaken_for_the_time_limit():
    started, cancel = asyncio.Event(), asyncio.Event()
    services = services_of(
        ScriptedModel(act(call("wait"))), waiting(started), guards=[TimeLimit(3600)], cancel=cancel
    )
    running = asyncio.ensure_future(turn(services))
    await started.wait()
    cancel.set()
    assert of_type(await running, TurnFinished)[0].reason == "cancelled"


async def test_the_same_call_with_the_same_result_three_times_ends_the_turn():
    end = await end_of(RepetitionGuard(), script=[reading(1)])
    assert (end.reason, end.steps) == ("gave_up", 3)
    assert end.detail == "the model made the same read call 3 times"


async def test_going_round_between_two_calls_ends_the_turn():
    end = await end_of(RepetitionGuard(), script=[reading(1), reading(2)] * 5)
    assert (end.reason, end.steps) == ("gave_up", 5)


async def test_running_the_tests_again_after_each_change_is_no_circle():
    test, edits = act(call("read", path="test")), [act(call("edit", path=str(n))) for n in range(4)]
    script: list[Answer] = [item for edit in edits for item in (edit, test)]
    assert (await end_of(RepetitionGuard(), script=[*script, "Fine."])).reason == "done"


async def test_the_same_change_three_times_is_a_circle():
    there, back = act(call("edit", path="there")), act(call("edit", path="back"))
    end = await end_of(RepetitionGuard(), script=[there, back] * 5)
    assert (end.reason, end.steps) == ("gave_up", 5)


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        (["1 failed in 0.01s", "1 failed in 0.12s", "1 failed in 3.40s"], "gave_up"),
        (["14:35:11, 3 s, at 0x7f01", "14:36:00, 12 s, at 0x7fa0", "15:00:59, 40 s, at 0x0"], "gave_up"),
        (["3 failed in 0.01s", "2 failed in 0.12s", "1 failed in 3.40s"], "done"),
    ],
)
async def test_a_call_with_another_result_is_no_repetition_unless_only_times_differ(
    results: list[str], reason: str
):
    left = iter(results)

    async def run(_: Any, context: ToolContext) -> ToolResult:
        return ToolResult(next(left))

    again = act(call("shell", path="pytest"))
    services = services_of(
        ScriptedModel(again, again, again, "Fine."), FakeTool("shell", run), guards=[RepetitionGuard()]
    )
    assert of_type(await turn(services), TurnFinished)[0].reason == reason


def test_the_same_call_in_succession_is_not_repeated_without_end_whatever_it_gives():
    guard, state = RepetitionGuard(), TurnState()
    stops = []
    for number in range(10):
        state.begin_step()
        state.calls = (ToolCall("id", "shell", {"command": "wc -l log"}, ""),)
        state.results["id"] = f"{number} log"
        stops.append(guard.check(state))
    assert stops[:9] == [None] * 9
    assert stops[9] == Stop("gave_up", "the model made the same shell call 10 times in succession")


def test_looking_twice_at_the_same_step_counts_its_calls_once():
    guard = RepetitionGuard(allowed=2)
    state = TurnState(steps=1, calls=(call("read"),))
    assert guard.check(state) is None
    assert guard.check(state) is None
    state.steps = 2
    assert isinstance(guard.check(state), Stop)


def test_a_solved_attempt_may_still_finish():
    limit = AttemptLimit(3, solved=lambda: True)
    assert limit.check(TurnState(steps=5)) is None


async def test_a_call_that_fails_again_is_a_circle_whatever_the_error_says():
    guard, state = RepetitionGuard(), TurnState()
    stops = []
    for number in range(3):
        state.begin_step()
        state.calls = (ToolCall("id", "edit", {"old": "x"}, ""),)
        state.results["id"] = f"error {number}"
        state.failed.add("id")
        stops.append(guard.check(state))

    assert stops[:2] == [None, None]
    assert stops[2] is not None


def at(steps: int, tokens: int = 0) -> TurnState:
    return TurnState(steps=steps, stats=[StepStats(decoded_tokens=tokens)])


def test_sub_agent_gets_half_of_the_steps_and_tokens_that_are_left():
    shared = SharedLimits(20, 1000)
    assert shared.check(at(4, 200)) is None
    assert (shared.share_of_steps(), shared.share_of_tokens()) == (8, 400)
    shared.spend(8, 400)
    assert (shared.share_of_steps(), shared.share_of_tokens()) == (4, 200)


def test_sub_agents_count_for_the_turn_that_they_work_for():
    shared = SharedLimits(10, 1000, steps_before=2, tokens_before=100)
    shared.spend(5, 700)
    assert shared.check(at(2)) is None
    by_steps, by_tokens = shared.check(at(3)), shared.check(at(1, 200))
    assert by_steps is not None
    assert by_steps.reason == "step_limit"
    assert by_tokens is not None
    assert by_tokens.reason == "token_limit"


def test_turn_without_sub_agents_is_left_to_its_own_limits():
    assert SharedLimits(2, 10).check(at(5, 100)) is None


def test_last_step_cannot_be_given_away():
    shared = SharedLimits(10, 0)
    shared.check(at(9))
    assert (shared.share_of_steps(), shared.share_of_tokens()) == (0, None)


def test_what_was_summed_up_may_be_looked_at_again():
    guard = RepetitionGuard(allowed=2)
    looking = call("read", path="a.py")
    first = TurnState(steps=1, calls=(looking,), results={looking.id: "1\tx"})
    assert guard.check(first) is None
    again = TurnState(steps=2, calls=(looking,), results={looking.id: "1\tx"}, compactions=1)
    assert guard.check(again) is None
    again.steps = 3
    assert guard.check(again) is not None
