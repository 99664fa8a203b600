"""What a turn tells while it goes on, and what the model is told in return."""

import asyncio
from typing import Any

import pytest

from agent.core.events import (
    AssistantReplied,
    Notice,
    StepFinished,
    TextDelta,
    ToolFinished,
    ToolOutput,
)
from agent.core.loop import REPEATED_CALL, Conversation
from agent.core.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from agent.core.model import Reply
from agent.core.tool import ToolContext
from tests.core.rig import (
    FakeTool,
    OpenGate,
    answered,
    of_type,
    results_in,
    services_of,
    turn,
    types,
    waiting,
)
from tests.fakes.scripted_model import ScriptedModel, act, bad, broken, call, figures, say


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


async def test_three_unusable_replies_of_any_kind_end_the_turn():
    replies = [act(call("cat", path="a")), bad("no valid JSON"), act(call("open", path="b"))]
    conversation = Conversation()
    ended = answered(
        await turn(services_of(ScriptedModel(*replies), FakeTool("read")), conversation=conversation)
    )
    assert (ended.reason, ended.steps) == ("gave_up", 3)
    assert ended.detail == "3 replies in a row were unusable: there is no tool 'open'"
    assert len(results_in(conversation.messages)) == 2


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
