"""What a session is told of the way in which its prompt begins now, and began before."""

from dataclasses import replace

import pytest

from agent.app.turns.prompt_head import PromptHead, head_in, head_of, head_record, system_to_keep, why_changed
from agent.core.messages import SystemMessage, UserMessage
from agent.llm.probe import protocol_named
from tools import built_in_tools

BEFORE = PromptHead(
    protocol="native", tools={"read": "1", "git__log": "2", "shell": "3"}, profile="mine", version="1.0"
)
EARLIER = [SystemMessage("Old words."), UserMessage("Go on.")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"version": "2.0", "profile": "other"}, ""),
        ({"protocol": "constrained"}, "tools are called in another way (constrained, before native)"),
        ({"tools": {**BEFORE.tools, "git__log": "9", "db__ask": "4"}}, "by MCP servers: +db__ask, git__log"),
        ({"tools": {"read": "1", "shell": "3"}}, "by MCP servers: -git__log"),
        ({"tools": {"read": "7"}, "profile": "other"}, "profile other (before mine): -git__log, "),
        ({"tools": {**BEFORE.tools, "task": "5"}, "version": "2.0"}, "by version 2.0 (before 1.0): +task"),
        ({"tools": {**BEFORE.tools, "skill": "5"}}, "than before: +skill"),
        ({"tools": dict(list(BEFORE.tools.items())[::-1])}, "than before: in another order"),
        ({"tools": dict.fromkeys("abcde", "1")}, "+a, +b, +c and 5 more"),
    ],
)  # fmt: skip
def test_cause_is_named_by_what_differs(changes: dict[str, object], words: str):
    why = why_changed(BEFORE, replace(BEFORE, **changes))
    assert words in why
    assert bool(why) == bool(words)


def test_earlier_system_text_stays_where_the_tools_are_the_same():
    newer = replace(BEFORE, version="2.0", profile="other")
    assert system_to_keep(EARLIER, BEFORE, newer) == EARLIER[0]
    assert system_to_keep(EARLIER, BEFORE, replace(newer, tools={})) is None
    assert system_to_keep(EARLIER, None, newer) is None
    assert system_to_keep(EARLIER[1:], BEFORE, newer) is None


@pytest.mark.parametrize("protocol", ["native", "constrained"])
def test_head_is_read_back_as_it_was_written(protocol: str):
    head = head_of(protocol_named(protocol, built_in_tools()), "mine")
    assert list(head.tools)[:1] == ["read"]
    assert head_in([head_record(BEFORE), head_record(head), {"type": "other"}]) == head


@pytest.mark.parametrize(
    "record", [{"type": "prompt_head", "mark": "abc"}, {"type": "prompt_head", "tools": 7}]
)
def test_what_nobody_noted_is_not_known(record: dict[str, object]):
    assert head_in([record]) is None
