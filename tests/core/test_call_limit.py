"""A limit of tool calls ends a turn, in the middle of a reply if need be."""

from collections.abc import Sequence
from typing import Any

from agent.core.attempts import run_attempts
from agent.core.events import CheckFinished, TurnFinished
from agent.core.limits import CallLimit, Guard, SharedLimits, TurnState
from agent.core.stats import StepStats
from agent.core.turn import Conversation, TurnServices
from tests.core.rig import (
    FakeCheck,
    FakeTool,
    OpenGate,
    answered,
    editing,
    of_type,
    results_in,
    services_of,
    turn,
)
from tests.fakes.scripted_model import ScriptedModel, act, call

NOT_RUN = "Not run: the limit of 2 tool calls is reached."


def reads(*paths: str, finish: bool = False) -> Any:
    calls = [call("read", path, path=path) for path in paths]
    return act(*calls, *([call("finish", "end", answer="All read.")] if finish else []))


async def test_calls_that_remain_in_the_reply_are_answered_but_not_run():
    conversation, tool = Conversation(), FakeTool("read", "text")
    services = services_of(ScriptedModel(reads("a", "b", "c", "d")), tool, guards=[CallLimit(2)])
    end = answered(await turn(services, conversation=conversation))
    assert [params.path for params in tool.calls] == ["a", "b"]
    assert results_in(conversation.messages) == ["text", "text", NOT_RUN, NOT_RUN]
    assert (end.reason, end.detail) == ("tool_call_limit", "the limit of 2 tool calls is reached")


async def test_calls_of_all_steps_are_counted():
    model = ScriptedModel(reads("a"), reads("b"), reads("c"))
    end = answered(await turn(services_of(model, FakeTool("read"), guards=[CallLimit(2)])))
    assert (end.reason, end.steps) == ("tool_call_limit", 2)


async def test_denied_and_impossible_calls_are_attempts_too():
    model = ScriptedModel(act(call("shell", "c1"), call("nosuch", "c2"), call("read", "c3")), "Fine.")
    services = services_of(
        model, FakeTool("shell"), FakeTool("read"), gate=OpenGate(shell="no"), guards=[CallLimit(2)]
    )
    conversation = Conversation()
    await turn(services, conversation=conversation)
    assert results_in(conversation.messages)[2] == NOT_RUN


async def test_repeated_call_that_is_not_run_is_not_counted():
    twice = act(call("read", "c1", path="a"), call("read", "c2", path="a"), call("read", "c3", path="b"))
    tool = FakeTool("read")
    await turn(services_of(ScriptedModel(twice), tool, guards=[CallLimit(2)]))
    assert [params.path for params in tool.calls] == ["a", "b"]


async def test_finish_after_the_last_call_that_is_allowed_is_taken():
    services = services_of(
        ScriptedModel(reads("a", "b", finish=True)), FakeTool("read"), guards=[CallLimit(2)]
    )
    assert answered(await turn(services)).answer == "All read."


async def test_finish_behind_a_call_that_was_not_run_is_not_taken():
    conversation = Conversation()
    model = ScriptedModel(reads("a", "b", "c", finish=True))
    services = services_of(model, FakeTool("read"), guards=[CallLimit(2)])
    end = answered(await turn(services, conversation=conversation))
    assert (end.reason, end.answer) == ("tool_call_limit", "")
    assert results_in(conversation.messages)[2:] == [NOT_RUN, NOT_RUN]


async def test_change_before_calls_that_are_not_run_is_checked():
    edits = act(*(call("edit", path, path=path) for path in "abc"))
    services = services_of(ScriptedModel(edits), editing(), guards=[CallLimit(2)], verifier=FakeCheck(True))
    events = await turn(services)
    assert len(of_type(events, CheckFinished)) == 1
    assert answered(events).reason == "tool_call_limit"


async def test_calls_of_all_attempts_are_counted():
    limit, tool = CallLimit(3), FakeTool("read")

    class TwoAttempts:
        count = 2

        def services(self, attempt: int, spent: StepStats, steps: int) -> TurnServices:
            guards: Sequence[Guard] = [limit]
            model = ScriptedModel(reads(f"{attempt}a", f"{attempt}b"), "Done.")
            return services_of(model, tool, guards=guards, verifier=FakeCheck(False))

        def restore(self) -> Sequence[str]:
            return ()

    events = [event async for event in run_attempts("", "Do it.", TwoAttempts())]
    assert of_type(events, TurnFinished)[0].reason == "tool_call_limit"
    assert [params.path for params in tool.calls] == ["1a", "1b", "2a"]


def test_sub_agent_gets_half_of_the_calls_that_are_left_and_they_count_for_the_turn():
    whole = CallLimit(9)
    whole.count()
    share = SharedLimits(20, 0, calls=whole).calls.share()
    assert share is not None
    assert share.remaining == 4
    share.count()
    assert whole.remaining == 7


def test_last_call_cannot_be_given_away():
    assert CallLimit(1).share() is None


def test_share_of_no_limit_is_no_limit():
    share = CallLimit(0).share()
    assert share is not None
    assert share.check(TurnState()) is None
