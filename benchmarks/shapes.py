"""Every shape of conversation that is ever sent, to be rendered under chat templates."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent.core.guide import Offer
from agent.core.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    broken_off,
)
from agent.llm.protocol import ConstrainedProtocol, NativeProtocol, ToolProtocol, to_wire
from agent.mcp.schema import projected
from tests.mcp.wild_schema import WILD
from tools import built_in_tools

_ASKED = UserMessage("What is in a.py?")
_SAID = AssistantMessage("It holds one line.")


_MARKS = "<|channel|>final<|message|></think><tool_call>"
_EVERY_KIND = '{"q": {"a": [1, null, {"b": true}], "c": {}}, "n": 1.5, "x": null, "s": "\\u00fc \\"q\\"\\n"}'


def _call(number: int, *, in_text: bool = False, name: str = "read", raw: str = "") -> ToolCall:
    """With an id as llama-server makes them."""
    raw = raw or '{"path": "a.py"}'
    return ToolCall(
        f"{number:02d}aBcDeFgHiJkLmNoPqRsTuVwXyZ0123", name, json.loads(raw), raw, in_text=in_text
    )


def _calls(*calls: ToolCall, text: str = "", thoughts: str = "") -> AssistantMessage:
    return AssistantMessage(text, thoughts, calls)


def _result(call: ToolCall, text: str = "1\tx = 1") -> ToolMessage:
    return ToolMessage(call.id, call.name, text)


def _conversations() -> dict[str, list[Message]]:
    one, two, three = _call(1), _call(2), _call(3)
    bare, every = _call(7, raw="{}"), _call(8, name="one__wild", raw=_EVERY_KIND)
    own = replace(one, id="call-12-0")
    bound, other = _call(4, in_text=True), _call(5, in_text=True)
    text = '{"tool": "read", "path": "a.py"}'
    return {
        "a first question": [_ASKED],
        "a question after an answer": [_ASKED, _SAID, UserMessage("And b.py?")],
        "the result of a call": [_ASKED, _calls(one), _result(one)],
        "a call with words before it": [_ASKED, _calls(one, text="I look."), _result(one)],
        "an empty result": [_ASKED, _calls(one), _result(one, "")],
        "several calls in a reply": [_ASKED, _calls(one, two), _result(one), _result(two)],
        "calls one after the other": [_ASKED, _calls(one), _result(one), _calls(two), _result(two)],
        "thoughts before a call": [_ASKED, _calls(one, thoughts="Hm."), _result(one)],
        "thoughts and words before calls": [
            _ASKED,
            _calls(one, two, text="I look.", thoughts="Hm."),
            _result(one),
            _result(two),
        ],
        "marks of a template in thoughts and words": [
            _ASKED,
            _calls(one, text=_MARKS, thoughts=_MARKS),
            _result(one, _MARKS),
        ],
        "an id of our own": [_ASKED, _calls(own), _result(own)],
        "a call without arguments": [_ASKED, _calls(bare), _result(bare)],
        "arguments of every kind": [_ASKED, _calls(every), _result(every)],
        "thoughts of an earlier turn": [
            _ASKED,
            AssistantMessage("One line.", "Hm."),
            UserMessage("And b.py?"),
        ],
        "an unknown tool": [
            _ASKED,
            _calls(_call(6, name="open")),
            _result(_call(6, name="open"), "No such."),
        ],
        "a reply that was dropped": [_ASKED, UserMessage("Your reply was empty.")],
        "what a person said during a call": [_ASKED, _calls(one), _result(one), UserMessage("Be quick.")],
        "what a person said after an interruption": [
            _ASKED,
            broken_off(AssistantMessage("")),
            UserMessage("Go on."),
        ],
        "a turn after calls": [
            _ASKED,
            _calls(one, two),
            _result(one),
            _result(two),
            _SAID,
            UserMessage("Why?"),
        ],
        "an interrupted call": [
            _ASKED,
            _calls(one),
            _result(one, "Cancelled before it ended."),
            UserMessage("?"),
        ],
        "a request for a summary": [_ASKED, _calls(three), _result(three), UserMessage("Sum up.")],
        "a summary, and calls that follow it": [
            _ASKED,
            UserMessage("(Summary)"),
            _calls(one),
            _result(one),
        ],
        "a call in the text": [_ASKED, _calls(bound, text=text), _result(bound)],
        "calls in the text, and what was said": [
            _ASKED,
            _calls(bound, text=text),
            _result(bound),
            _calls(other, text=text),
            _result(other),
            UserMessage("Be quick."),
        ],
    }


def request_shapes() -> dict[str, dict[str, Any]]:
    """What a server is sent of each shape, by its name: `messages`, and `tools` where they go along."""
    tools = built_in_tools("replace")
    protocols: Mapping[str, ToolProtocol] = {
        "native": NativeProtocol(tools),
        "constrained": ConstrainedProtocol(tools),
        "no tools": NativeProtocol([]),
    }
    shapes: dict[str, dict[str, Any]] = {}
    for kind, protocol in protocols.items():
        for name, messages in _conversations().items():
            if kind != "native" and _has_native_calls(messages):
                continue
            sent: list[Message] = [SystemMessage(protocol.system_text("Be brief.")), *messages]
            fields = protocol.request_fields(Offer())
            with_tools = {"tools": fields["tools"]} if "tools" in fields else {}
            shapes[f"{kind}: {name}"] = {"messages": to_wire(sent), **with_tools}
    first = shapes["native: a first question"]
    shapes["native: tools of an MCP server"] = {**first, "tools": [*first["tools"], *_of_an_mcp_server()]}
    return shapes


def _of_an_mcp_server() -> list[dict[str, Any]]:
    """A tool with a schema that has everything, and one without parameters."""
    schemas = {"one__wild": projected(WILD), "one__bare": projected({"type": "object"})}
    return [
        {"type": "function", "function": {"name": name, "description": "", "parameters": schema}}
        for name, schema in schemas.items()
    ]


def _has_native_calls(messages: list[Message]) -> bool:
    calls = [call for one in messages if isinstance(one, AssistantMessage) for call in one.tool_calls]
    return any(not call.in_text for call in calls)
