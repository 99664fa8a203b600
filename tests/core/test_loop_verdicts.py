"""What a turn makes of its check and of its guide: when they are asked, and where the model reads them."""

import asyncio
from typing import Any

import pytest

from agent.core.events import CheckFinished, UserMessageAdded
from agent.core.guide import Offer
from agent.core.loop import Conversation
from agent.core.tool import ToolResult
from tests.core.rig import (
    FakeCheck,
    FakeTool,
    answered,
    editing,
    notes_in,
    of_type,
    results_in,
    services_of,
    turn,
)
from tests.fakes.scripted_model import ScriptedModel, act, call


async def test_the_verdict_on_a_change_rides_in_the_result_of_the_call():
    model = ScriptedModel(act(call("edit")), act(call("finish", answer="Mended.")))
    check = FakeCheck(False, True)
    conversation = Conversation()

    events = await turn(services_of(model, editing(), verifier=check), conversation=conversation)

    assert results_in(conversation.messages)[0] == "edited"
    assert notes_in(conversation) == ["The check fails (1).", ""]
    assert check.asked == ["change", "finish"]
    assert [event.passed for event in of_type(events, CheckFinished)] == [False, True]
    assert (answered(events).reason, answered(events).answer) == ("done", "Mended.")


async def test_the_verdict_comes_once_after_several_changes_of_one_reply():
    reply = act(call("edit", "c1"), call("read", "c2"))
    check = FakeCheck(False, True)
    conversation = Conversation()

    await turn(
        services_of(ScriptedModel(reply, "Done."), editing(), FakeTool("read", "x"), verifier=check),
        conversation=conversation,
    )

    assert results_in(conversation.messages) == ["edited", "x"]
    assert notes_in(conversation) == ["", "The check fails (1)."]
    assert check.asked == ["change", "finish"]


async def test_no_check_is_run_when_nothing_changed():
    check = FakeCheck(True)
    await turn(services_of(ScriptedModel(act(call("read")), "Fine."), FakeTool("read"), verifier=check))
    assert check.asked == ["finish"]


async def test_no_check_is_run_after_a_change_that_failed():
    check = FakeCheck(True)
    tool = FakeTool("edit", ToolResult("no such text", is_error=True), access="write")
    await turn(services_of(ScriptedModel(act(call("edit")), "Fine."), tool, verifier=check))
    assert check.asked == ["finish"]


async def test_a_change_and_a_finish_in_one_reply_are_checked_once():
    model = ScriptedModel(act(call("edit", "c1"), call("finish", "c2", answer="Mended.")))
    check = FakeCheck(True)

    events = await turn(services_of(model, editing(), verifier=check))

    assert check.asked == ["finish"]
    assert answered(events).answer == "Mended."


async def test_finishing_with_a_failing_check_goes_back_to_the_model():
    finish = act(call("finish", answer="Mended."))
    model = ScriptedModel(finish, finish)
    conversation = Conversation()

    events = await turn(services_of(model, verifier=FakeCheck(False, True)), conversation=conversation)

    assert results_in(conversation.messages) == ["The check fails (1).", "Done."]
    assert answered(events).reason == "done"


async def test_a_text_answer_with_a_failing_check_goes_back_as_a_message():
    model = ScriptedModel("Mended.", "Now it is.")

    events = await turn(services_of(model, verifier=FakeCheck(False, True)))

    assert [event.text for event in of_type(events, UserMessageAdded)] == ["Do it.", "The check fails (1)."]
    assert model.requests[1][-1] == {"role": "user", "content": "The check fails (1)."}
    assert answered(events).answer == "Now it is."


@pytest.mark.parametrize("reply", ["Mended.", act(call("finish", answer="Mended."))])
async def test_the_third_failing_finish_ends_the_turn(reply: Any):
    events = await turn(services_of(ScriptedModel(reply), verifier=FakeCheck(False)))

    assert answered(events).reason == "check_failed"
    assert answered(events).steps == 3
    assert answered(events).detail == "the check still fails after 3 tries: make test"
    assert answered(events).answer == "Mended."


async def test_change_that_stands_in_a_reply_twice_is_checked_once():
    twice = act(call("edit", "c1"), call("edit", "c2"))
    check = FakeCheck(True)
    await turn(services_of(ScriptedModel(twice, "Fine."), editing(), verifier=check))
    assert check.asked == ["change", "finish"]


async def test_a_cancel_while_the_check_runs_ends_the_turn():
    cancel = asyncio.Event()

    class EndlessCheck(FakeCheck):
        async def at_finish(self) -> Any:
            cancel.set()
            await asyncio.Event().wait()

    model = ScriptedModel(act(call("finish", answer="Done.")))
    conversation = Conversation()

    events = await turn(
        services_of(model, verifier=EndlessCheck(True), cancel=cancel), conversation=conversation
    )

    assert answered(events).reason == "cancelled"
    assert results_in(conversation.messages) == ["Interrupted."]


class FakeGuide:
    """Offers only reading until something was read, and cues with the number of checks it has seen."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def observe(self, event: Any) -> None:
        self.seen.append(event.type)

    def offer(self) -> Offer:
        return Offer(tools=frozenset({"edit"} if "tool_finished" in self.seen else {"read"}))

    def cue(self) -> str:
        return f"Checked {self.seen.count('check_finished')} times, go on."


async def test_the_guide_sees_the_events_and_narrows_each_reply():
    model = ScriptedModel(act(call("read")), "Fine.")
    await turn(services_of(model, FakeTool("read"), guide=FakeGuide()))

    assert [offer.tools for offer in model.offers] == [frozenset({"read"}), frozenset({"edit"})]


async def test_the_guide_has_the_last_word_after_a_verdict():
    model = ScriptedModel(act(call("edit")), "Done.")
    check = FakeCheck(False, True)

    await turn(services_of(model, editing(), verifier=check, guide=FakeGuide()))

    assert model.requests[1][-1]["content"].endswith("The check fails (1).\nChecked 1 times, go on.")


async def test_without_a_guide_everything_is_offered():
    model = ScriptedModel("Fine.")
    await turn(services_of(model))
    assert model.offers == [Offer()]
