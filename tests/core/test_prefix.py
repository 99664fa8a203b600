"""Consecutive requests of a session extend each other, so that the server's prompt cache holds."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.attempts import run_attempts
from agent.core.events import Event, StepStarted
from agent.core.limits import RepetitionGuard, StepLimit
from agent.core.loop import Conversation, run_turn
from agent.core.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage
from agent.core.model import Reply, StopReason
from agent.core.stats import StepStats
from agent.core.turn import TurnServices
from tests.core.rig import FakeCheck, FakeTool, OpenGate, editing, services_of
from tests.fakes.scripted_model import ScriptedModel, figures

texts = st.text(max_size=12)
tool_names = st.sampled_from(["read", "edit", "shell", "finish", "unknown"])


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    stop: StopReason = draw(
        st.sampled_from(["stop", "stop", "stop", "stop", "error", "overflow", "cancelled"])
    )
    in_text = draw(st.booleans())
    calls = tuple(
        ToolCall(f"c{draw(st.integers(0, 10**9))}", name, {"path": draw(texts)}, "{}", in_text)
        for name in draw(st.lists(tool_names, max_size=3))
    )
    problem = draw(st.sampled_from(["", "", "", "cut off"]))
    message = AssistantMessage(draw(texts), draw(texts), calls)
    return Reply(message=message, stop_reason=stop, stats=figures(), problem=problem)


def extends(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> bool:
    return after[: len(before)] == before


def hold_together(events: list[Event], requests: list[list[dict[str, Any]]]) -> None:
    """Every request extends the one before it, or an event in between has said that it does not."""
    broken, seen = True, 0
    for event in events:
        if event.type == "prefix_broken":
            broken = True
        elif isinstance(event, StepStarted):
            if not broken:
                assert extends(requests[seen - 1], requests[seen])
            broken, seen = False, seen + 1
    assert seen == len(requests)


def services(model: ScriptedModel, passes: list[bool]) -> TurnServices:
    tools = (FakeTool("read", "x"), FakeTool("shell"), editing())
    return services_of(
        model,
        *tools,
        gate=OpenGate(shell="not here"),
        guards=[StepLimit(6), RepetitionGuard()],
        verifier=FakeCheck(*passes) if passes else None,
    )


@settings(max_examples=80, deadline=None)
@given(
    script=st.lists(replies(), min_size=1, max_size=14),
    prompts=st.lists(texts, min_size=1, max_size=4),
    passes=st.lists(st.booleans(), max_size=6),
)
def test_requests_of_many_turns_extend_each_other_unless_told_otherwise(
    script: list[Reply], prompts: list[str], passes: list[bool]
):
    model = ScriptedModel(*script)
    conversation = Conversation(messages=[SystemMessage("Be brief.")])

    async def session() -> list[Event]:
        return [
            event
            for prompt in prompts
            async for event in run_turn(conversation, prompt, services(model, passes))
        ]

    hold_together(asyncio.run(session()), model.requests)


@settings(max_examples=30, deadline=None)
@given(script=st.lists(replies(), min_size=1, max_size=14), passes=st.lists(st.booleans(), max_size=6))
def test_requests_of_many_attempts_extend_each_other_unless_told_otherwise(
    script: list[Reply], passes: list[bool]
):
    model = ScriptedModel(*script)

    class ThreeAttempts:
        count = 3

        def services(self, attempt: int, spent: StepStats, steps: int) -> TurnServices:
            return services(model, passes)

        def restore(self) -> list[str]:
            return []

    async def session() -> list[Event]:
        return [event async for event in run_attempts("Be brief.", "Do it.", ThreeAttempts())]

    hold_together(asyncio.run(session()), model.requests)


@settings(max_examples=80, deadline=None)
@given(script=st.lists(replies(), min_size=1, max_size=14), passes=st.lists(st.booleans(), max_size=6))
def test_each_call_has_one_start_one_end_and_one_result(script: list[Reply], passes: list[bool]):
    model = ScriptedModel(*script)
    conversation = Conversation()

    async def session() -> list[Event]:
        return [event async for event in run_turn(conversation, "Do it.", services(model, passes))]

    events = asyncio.run(session())

    began = [event.call_id for event in events if event.type == "tool_started"]
    ended = [event.call_id for event in events if event.type == "tool_finished"]
    assert began == ended
    kept = [message for message in conversation.messages if isinstance(message, AssistantMessage)]
    called = [call.id for message in kept for call in message.tool_calls]
    results = [message.call_id for message in conversation.messages if isinstance(message, ToolMessage)]
    assert sorted(called) == sorted(results)
    assert [event.type for event in events].count("turn_finished") == 1
    assert events[-1].type == "turn_finished"
