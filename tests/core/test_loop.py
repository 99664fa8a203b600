"""What a turn tells while it goes on, and what the model is told in return."""

import asyncio
from typing import Any

import pytest

from agent.core.events import (
    AssistantReplied,
    CheckFinished,
    Notice,
    StepFinished,
    TextDelta,
    ToolFinished,
    ToolOutput,
    TurnFinished,
    UserMessageAdded,
)
from agent.core.guide import Offer
from agent.core.loop import REPEATED_CALL, Conversation
from agent.core.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from agent.core.model import Reply
from agent.core.tool import ToolContext, ToolResult
from tests.core.rig import FakeCheck, FakeTool, OpenGate, editing, of_type, services_of, turn, types, waiting
from tests.fakes.scripted_model import ScriptedModel, act, bad, broken, call, figures, say


def answered(events: list[Any]) -> TurnFinished:
    """The end of the turn, which has to be the last event and the only one of its kind."""
    [end] = of_type(events, TurnFinished)
    assert events[-1] is end
    return end


def results_in(messages: list[Any]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage)]


async def test_a_normal_turn_tells_its_events_in_order():
    model = ScriptedModel(act(call("read", path="a.py"), text="I look."), "It is fine.")

    events = await turn(services_of(model, FakeTool("read", "x = 1")))

    assert types(events) == [
        "user_message",
        "step_started",
        "assistant_message",
        "step_finished",
        "tool_started",
        "tool_finished",
        "step_started",
        "text_delta",
        "assistant_message",
        "step_finished",
        "turn_finished",
    ]
    assert answered(events).reason == "done"
    assert answered(events).answer == "It is fine."
    assert answered(events).steps == 2


async def test_the_conversation_holds_every_message_in_order():
    reply = act(call("read"), text="I look.")
    conversation = Conversation(messages=[SystemMessage("Be brief.")])

    await turn(services_of(ScriptedModel(reply, "Fine."), FakeTool("read", "x")), "Look.", conversation)

    assert conversation.messages == [
        SystemMessage("Be brief."),
        UserMessage("Look."),
        reply.message,
        ToolMessage("c1", "read", "x"),
        AssistantMessage("Fine."),
    ]


async def test_the_figures_of_a_turn_are_those_of_all_its_steps():
    model = ScriptedModel(
        act(call("read"), stats=figures(prompt=100, decoded=7)), say("Fine.", figures(10, 3, cached=107))
    )

    events = await turn(services_of(model, FakeTool("read")))

    assert [step.stats.decoded_tokens for step in of_type(events, StepFinished)] == [7, 3]
    stats = answered(events).stats
    assert (stats.prompt_tokens, stats.cached_tokens, stats.decoded_tokens) == (110, 107, 10)


async def test_deltas_and_tool_output_are_passed_on():
    async def talk(_: Any, context: ToolContext) -> str:
        context.emit("compiling")
        return "compiled"

    events = await turn(services_of(ScriptedModel(act(call("shell")), "Done."), FakeTool("shell", talk)))

    assert [event.text for event in of_type(events, ToolOutput)] == ["compiling"]
    assert [event.text for event in of_type(events, TextDelta)] == ["Done."]
    order = types(events)
    assert order.index("tool_output") < order.index("tool_finished")


async def test_calls_of_one_reply_run_in_their_order():
    model = ScriptedModel(act(call("read", "c1", path="a"), call("read", "c2", path="b")), "Fine.")
    tool = FakeTool("read")
    conversation = Conversation()

    await turn(services_of(model, tool), conversation=conversation)

    assert [params.path for params in tool.calls] == ["a", "b"]
    results = [message for message in conversation.messages if isinstance(message, ToolMessage)]
    assert [result.call_id for result in results] == ["c1", "c2"]


async def test_call_that_stands_in_a_reply_twice_is_run_once_and_answered_twice():
    twice = act(call("read", "c1", path="a"), call("read", "c2", path="a"), call("read", "c3", path="b"))
    tool = FakeTool("read", "x = 1")
    conversation = Conversation()

    await turn(services_of(ScriptedModel(twice, "Fine."), tool), conversation=conversation)

    assert [params.path for params in tool.calls] == ["a", "b"]
    results = [message for message in conversation.messages if isinstance(message, ToolMessage)]
    assert [(one.call_id, one.text) for one in results] == [
        ("c1", "x = 1"),
        ("c2", REPEATED_CALL),
        ("c3", "x = 1"),
    ]


async def test_change_that_stands_in_a_reply_twice_is_checked_once():
    twice = act(call("edit", "c1"), call("edit", "c2"))
    check = FakeCheck(True)
    await turn(services_of(ScriptedModel(twice, "Fine."), editing(), verifier=check))
    assert check.asked == ["change", "finish"]


async def test_model_that_only_thinks_is_nudged_twice_and_then_said_to_have_no_answer():
    thinking = Reply(
        message=AssistantMessage("", "Hm."),
        stop_reason="stop",
        stats=figures(),
        problem="empty",
        is_empty=True,
    )
    conversation = Conversation()
    events = await turn(services_of(ScriptedModel(thinking)), conversation=conversation)
    assert answered(events).reason == "gave_up"
    assert answered(events).detail == "the model produced no answer: 3 replies in a row were empty"
    assert [type(one) for one in conversation.messages] == [UserMessage, UserMessage, UserMessage]


async def test_a_denial_reaches_the_model():
    model = ScriptedModel(act(call("shell")), "Then not.")

    await turn(services_of(model, FakeTool("shell"), gate=OpenGate(shell="it changes rights")))

    assert model.requests[1][-1]["content"] == "Denied: it changes rights"


async def test_an_unknown_tool_costs_a_step_and_no_more():
    model = ScriptedModel(act(call("cat")), "Sorry.")
    events = await turn(services_of(model, FakeTool("read")))
    assert answered(events).reason == "done"
    assert model.requests[1][-1]["content"].startswith("There is no tool 'cat'.")


async def test_the_verdict_on_a_change_rides_in_the_result_of_the_call():
    model = ScriptedModel(act(call("edit")), act(call("finish", answer="Mended.")))
    check = FakeCheck(False, True)
    conversation = Conversation()

    events = await turn(services_of(model, editing(), verifier=check), conversation=conversation)

    assert results_in(conversation.messages)[0] == "edited\n\nThe check fails (1)."
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

    assert results_in(conversation.messages) == ["edited", "x\n\nThe check fails (1)."]
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


async def test_each_call_gets_one_result_even_if_it_finishes_twice():
    model = ScriptedModel(act(call("finish", "c1", answer="A"), call("finish", "c2", answer="B")))
    conversation = Conversation()

    events = await turn(services_of(model), conversation=conversation)

    assert results_in(conversation.messages) == ["Done.", "Done."]
    assert answered(events).answer == "A"


async def test_an_unusable_reply_is_dropped_and_the_model_is_told_why():
    model = ScriptedModel(bad("no valid JSON"), "Better.")
    conversation = Conversation()

    events = await turn(services_of(model), conversation=conversation)

    assert conversation.messages == [
        UserMessage("Do it."),
        UserMessage("no valid JSON"),
        AssistantMessage("Better."),
    ]
    assert types(events)[4:7] == ["notice", "prefix_broken", "user_message"]
    assert of_type(events, Notice)[0].text == "reply dropped: no valid JSON"
    assert answered(events).reason == "done"


async def test_three_unusable_replies_end_the_turn_and_none_is_in_the_history():
    conversation = Conversation()

    events = await turn(services_of(ScriptedModel(bad("no valid JSON"))), conversation=conversation)

    assert answered(events).reason == "gave_up"
    assert answered(events).steps == 3
    assert "no valid JSON" in answered(events).detail
    assert not of_type(conversation.messages, AssistantMessage)
    assert len(of_type(events, AssistantReplied)) == 3


async def test_a_usable_reply_forgives_the_bad_ones_before_it():
    good = act(call("read"))
    model = ScriptedModel(bad("a"), bad("b"), good, bad("c"), bad("d"), "Fine.")
    events = await turn(services_of(model, FakeTool("read")))
    assert answered(events).reason == "done"


@pytest.mark.parametrize(
    ("stop_reason", "reason", "detail"),
    [
        ("error", "server_failed", "the server is gone"),
        ("overflow", "context_full", "the server is gone"),
        ("cancelled", "cancelled", "interrupted"),
    ],
)
async def test_the_turn_ends_in_order_when_the_stream_gave_no_reply(
    stop_reason: str, reason: str, detail: str
):
    conversation = Conversation()
    model = ScriptedModel(broken(stop_reason, "the server is gone"))

    events = await turn(services_of(model), conversation=conversation)

    assert (answered(events).reason, answered(events).detail) == (reason, detail)
    assert types(events)[-2:] == ["step_finished", "turn_finished"]
    assert conversation.messages[0] == UserMessage("Do it.")
    assert conversation.messages[1:] == ([AssistantMessage("half a")] if reason == "cancelled" else [])


async def test_a_cancel_while_a_tool_runs_finishes_each_started_call():
    started, cancel = asyncio.Event(), asyncio.Event()
    late = FakeTool("late")
    model = ScriptedModel(act(call("wait", "c1"), call("late", "c2")))
    conversation = Conversation()
    services = services_of(model, waiting(started), late, cancel=cancel)

    running = asyncio.ensure_future(turn(services, conversation=conversation))
    await started.wait()
    cancel.set()
    events = await running

    finished = [(event.call_id, event.outcome) for event in of_type(events, ToolFinished)]
    assert finished == [("c1", "cancelled"), ("c2", "cancelled")]
    assert late.calls == []
    assert len(results_in(conversation.messages)) == 2
    assert answered(events).reason == "cancelled"


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


async def test_a_turn_that_is_cancelled_before_it_begins_asks_nothing():
    cancel = asyncio.Event()
    cancel.set()
    model = ScriptedModel("Hello.")

    events = await turn(services_of(model, cancel=cancel))

    assert types(events) == ["user_message", "turn_finished"]
    assert answered(events).reason == "cancelled"
    assert model.requests == []


async def test_the_next_turn_says_that_the_last_request_got_no_reply():
    conversation = Conversation()
    model = ScriptedModel(broken("error"), "Fine.")

    await turn(services_of(model), "First.", conversation)
    events = await turn(services_of(model), "Second.", conversation)

    assert types(events)[:2] == ["prefix_broken", "user_message"]
    assert model.requests[1] == [{"role": "user", "content": "First.\n\nSecond."}]


async def test_a_turn_after_a_finished_one_extends_it():
    conversation = Conversation()
    model = ScriptedModel("One.", "Two.")

    await turn(services_of(model), "First.", conversation)
    events = await turn(services_of(model), "Second.", conversation)

    assert "prefix_broken" not in types(events)
    assert model.requests[1][:2] == [*model.requests[0], {"role": "assistant", "content": "One."}]


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
