"""A conversation comes back from its file exactly as it was."""

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.events import (
    ApprovalRequest,
    Event,
    StepFinished,
    ToolFinished,
    TurnFinished,
    UserMessageAdded,
    to_record,
)
from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from agent.core.stats import StepStats
from agent.core.tool import FileDiff
from agent.session.replay import events_in
from agent.session.transcript import (
    LOST_RESULT,
    STRAY_RESULT,
    history_record,
    last_reply_number,
    message_record,
    messages_in,
    with_results,
)

texts = st.text(max_size=20)
calls = st.builds(
    ToolCall,
    texts,
    texts,
    st.dictionaries(texts, st.one_of(texts, st.integers(), st.booleans())),
    texts,
    st.booleans(),
)
messages = st.one_of(
    st.builds(SystemMessage, texts),
    st.builds(UserMessage, texts),
    st.builds(ToolMessage, texts, texts, texts, st.booleans(), texts),
    st.builds(AssistantMessage, texts, texts, st.lists(calls, max_size=2).map(tuple)),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(messages, max_size=6), st.lists(messages, max_size=3))
def test_messages_come_back_as_they_were(before: list[Message], after: list[Message]):
    records = [history_record(before, "a test"), *map(message_record, after)]
    assert messages_in(json.loads(json.dumps(records))) == [*before, *after]


def test_what_is_not_understood_is_passed_over():
    records = [
        {"type": "message", "role": "oracle", "text": "?"},
        {"type": "message", "role": "assistant", "text": "no calls"},
        {"type": "history", "messages": "none"},
        {"type": "notice", "text": "x"},
        message_record(UserMessage("Hi")),
    ]
    assert messages_in(records) == [UserMessage("Hi")]


def test_calls_without_a_result_get_one():
    two = AssistantMessage("", "", (ToolCall("a", "read", {}, "{}"), ToolCall("b", "glob", {}, "{}")))
    done = ToolMessage("a", "read", "text")
    lost = ToolMessage("b", "glob", LOST_RESULT, is_error=True)
    assert with_results([UserMessage("Hi"), two, done]) == [UserMessage("Hi"), two, done, lost]
    assert with_results([two, done, UserMessage("?")]) == [two, done, lost, UserMessage("?")]
    assert with_results([two, done, replace(lost, text="x")]) == [two, done, replace(lost, text="x")]


def test_a_damaged_file_gives_a_history_that_servers_take():
    """Results whose call was not understood, or that stand there twice, and arguments that are no object."""
    called = AssistantMessage("", "", (ToolCall("a", "read", {"path": "x"}, '{"path": "x'),))
    done, stray = ToolMessage("a", "read", "text"), ToolMessage("b", "glob", "of nobody")
    mended = AssistantMessage("", "", (ToolCall("a", "read", {"path": "x"}, '{"path": "x"}'),))
    instead = UserMessage(STRAY_RESULT)
    assert with_results([stray, UserMessage("Hi"), called, stray, done, done]) == [
        instead,
        UserMessage("Hi"),
        mended,
        done,
        instead,
    ]


def test_numbers_of_replies_go_on_after_the_highest():
    named = [
        AssistantMessage("", "", (ToolCall(name, "read", {}, "{}"),))
        for name in ("call-9-0", "text-12-1", "x")
    ]
    assert last_reply_number(named) == 12
    assert last_reply_number([UserMessage("call-99-0")]) == 0


def test_events_come_back_as_they_were():
    events: list[Event] = [
        UserMessageAdded(text="Hi"),
        ApprovalRequest(
            request_id="1",
            call_id="c",
            tool="shell",
            arguments={"command": "ls"},
            reason="r",
            commands=("ls",),
        ),
        ToolFinished(
            call_id="c", tool="edit", outcome="ok", text="t", seconds=0.5, diffs=(FileDiff("a", None, "x"),)
        ),
        StepFinished(step=1, stop_reason="stop", stats=StepStats(prompt_tokens=7, prompt_seconds=0.5)),
        TurnFinished(reason="done", answer="a", detail="d", steps=1, stats=StepStats()),
    ]
    records = json.loads(json.dumps([to_record(event) for event in events]))
    assert list(events_in([{"type": "session"}, *records, {"type": "user_message"}])) == events
