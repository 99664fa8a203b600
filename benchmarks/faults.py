"""What local models and servers do wrong, as scripts for the scripted server, each with its one outcome.

The tests play them through `agent run`, and `python -m benchmarks.recovery` prints them as a table. All of
them are the same small task: make `made.txt`. Nothing else may be written, whatever arrives.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

TASK = "Make the file made.txt with the text made."
MADE = "made\n"

_BAD_JSON = '{"path": "made.txt", "content": "ma'
# What a client would run that completes half a call by guessing.
_GUESSED = '{"command": "touch guessed.txt"'
_PARSER = "The model produced output that does not match the expected peg-native format"


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def _calls(*calls: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"tool_calls": list(calls), **more}


MAKES = _calls(_call("write", path="made.txt", content=MADE))
SAYS = {"text": "I made it."}
_THINKS = {"reasoning": "I could make the file."}
_SAME = _calls(_call("glob", pattern="*.nothing"))
_TAGGED = (
    '<tool_call>\n{"name": "write", "arguments": {"path": "made.txt", "content": "made\\n"}}\n</tool_call>'
)
_TAKEN_TWICE = "call-of-a-server-that-counts-anew"

Body = Mapping[str, Any]


def _same_id(path: str) -> dict[str, Any]:
    """A reply in raw chunks, whose call has the id that the one before it had."""
    function = {"name": "write", "arguments": json.dumps({"path": path, "content": MADE})}
    delta = {"tool_calls": [{"index": 0, "id": _TAKEN_TWICE, "type": "function", "function": function}]}
    return {"chunks": ({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]},)}


def _said(text: str) -> dict[str, Any]:
    """A piece of a reply as a raw chunk."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


def _alternates(body: Body) -> str:
    """As the templates of Mistral and its relatives."""
    roles = [message["role"] for message in body["messages"]]
    return "conversation roles must alternate user/assistant" if ("tool", "user") in pairwise(roles) else ""


def _takes_one_call(body: Body) -> str:
    """As the templates of Llama 3.x."""
    several = any(len(message.get("tool_calls") or ()) > 1 for message in body["messages"])
    return "This model only supports single tool-calls at once!" if several else ""


def _wants_short_ids(body: Body) -> str:
    """As the templates of Mistral Nemo and Small 3.2."""
    calls = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    long = any(len(call["id"]) != 9 for call in calls)
    return "Tool call IDs should be alphanumeric strings with length 9!" if long else ""


def _takes_no_marks(body: Body) -> str:
    """As the template of gpt-oss."""
    replies = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
    marked = any("<|channel|>" in text for text in replies)
    return "You have passed a message containing <|channel|> tags in the content field" if marked else ""


def _fails_on_tools(body: Body) -> str:
    return "While executing CallExpression at line 3, column 7 in source" if body.get("tools") else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. `steps` are replies, `server` settings of the scripted server.

    `exit_code` is how the run ends, `chats` how many requests it makes (0: not counted) and `says` what
    people read. `made` is whether the file is there then. With `sums_up` requests for a summary may come in
    between. `refuses` is a chat template that fails, and the words it fails with. `variables` are those of
    the run's environment.
    """

    name: str
    steps: tuple[Mapping[str, Any], ...]
    chats: int
    exit_code: int = 0
    says: str = ""
    made: bool = True
    server: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    sums_up: bool = False
    refuses: Callable[[Body], str] | None = None

    def script(self) -> list[Any]:
        """What the scripted server is given; each run needs its own."""
        if not self.sums_up and not self.refuses:
            return list(self.steps)
        remaining = iter(self.steps)

        def answer(body: Body) -> Mapping[str, Any]:
            if self.refuses and (refusal := self.refuses(body)):
                return {"fault": "http_500", "message": refusal, "times": 0}
            if "Sum up our conversation" in str(body["messages"][-1]["content"]):
                return {"text": "The file is still to be made.", "times": 0}
            return {**next(remaining), "times": 0}

        return [answer]


FAULTS: tuple[Fault, ...] = (
    Fault(
        name="malformed arguments, a server that refuses a history with them",
        steps=(_calls({"name": "shell", "arguments": _GUESSED}), MAKES, SAYS),
        chats=3,
        says="not valid JSON",
        server={"strict": True},
    ),
    Fault(
        name="arguments that are no object",
        steps=(_calls({"name": "write", "arguments": '["made.txt", "made"]'}), MAKES, SAYS),
        chats=3,
        says="are not a JSON object",
        server={"strict": True},
    ),
    Fault(
        name="call cut by the limit of tokens",
        steps=(_calls({"name": "write", "arguments": _BAD_JSON}, finish_reason="length"), MAKES, SAYS),
        chats=3,
        says="cut off",
        server={"strict": True},
    ),
    Fault(name="call in the text", steps=({"text": _TAGGED}, SAYS), chats=2),
    Fault(
        name="call in the text that is broken",
        steps=({"text": _TAGGED[:-30]}, MAKES, SAYS),
        chats=3,
        says="as text that cannot be read",
    ),
    Fault(
        name="call in the text, in the form of another model",
        steps=({"text": f"[TOOL_CALLS]write[ARGS]{_BAD_JSON}"}, MAKES, SAYS),
        chats=3,
        says="as text that cannot be read",
    ),
    Fault(
        name="call among the thoughts",
        steps=({"reasoning": _TAGGED}, MAKES, SAYS),
        chats=3,
        says="stood in your thoughts",
    ),
    Fault(
        name="unknown tool",
        steps=(_calls(_call("create_file", path="made.txt")), MAKES, SAYS),
        chats=3,
        says="There is no tool 'create_file'",
    ),
    Fault(
        name="unknown tool, three times",
        steps=({**_calls(_call("create_file", path="made.txt")), "times": 0},),
        exit_code=1,
        chats=3,
        says="3 replies in a row were unusable: there is no tool 'create_file'",
        made=False,
    ),
    Fault(
        name="wrong types of arguments",
        steps=(_calls(_call("write", path=["made.txt"], content=1)), MAKES, SAYS),
        chats=3,
        says="Wrong arguments for write",
    ),
    Fault(
        name="the same call twice in a reply",
        steps=(_calls(*[_call("write", path="made.txt", content=MADE)] * 2), SAYS),
        chats=2,
    ),
    Fault(
        name="two calls with the same id, in two replies",
        steps=(_same_id("made.txt"), _same_id("made.txt"), SAYS),
        chats=3,
    ),
    Fault(
        name="several calls where one was asked for",
        steps=(_calls(_call("glob", pattern="*"), _call("write", path="made.txt", content=MADE)), SAYS),
        chats=2,
    ),
    Fault(
        name="error 500 from the server's own parser",
        steps=({"fault": "http_500", "message": _PARSER}, MAKES, SAYS),
        chats=3,
        says="does not match the expected peg-native format",
    ),
    Fault(
        name="error of the parser in mid-reply, three times",
        steps=({"fault": "error_event", "message": _PARSER, "text": "I will", "times": 3}, MAKES, SAYS),
        chats=5,
        says="could not read your tool call",
    ),
    Fault(
        name="error 500 again and again",
        steps=({"fault": "http_500", "message": "out of luck", "times": 0},),
        exit_code=5,
        chats=3,
        says="the server failed: out of luck",
        made=False,
    ),
    Fault(
        name="thoughts and nothing else, twice",
        steps=({**_THINKS, "times": 2}, MAKES, SAYS),
        chats=4,
        says="Your reply was empty",
    ),
    Fault(
        name="thoughts and nothing else, for ever",
        steps=({**_THINKS, "times": 0},),
        exit_code=1,
        chats=3,
        says="the model produced no answer",
        made=False,
    ),
    Fault(
        name="the same call again and again",
        steps=({**_SAME, "times": 0},),
        exit_code=1,
        chats=3,
        says="the model made the same glob call 3 times",
        made=False,
    ),
    Fault(
        name="the same call ten times, with another outcome each time",
        steps=({**_calls(_call("shell", command="date +%N")), "times": 0},),
        exit_code=1,
        chats=10,
        says="the model made the same shell call 10 times in succession",
        made=False,
    ),
    Fault(
        name="a reply far beyond its limit of tokens, which the server passes over",
        steps=({"chunks": tuple(_said(f"{number} ") for number in range(800))}, MAKES, SAYS),
        chats=3,
        says="cut off because it was too long",
        variables={"AGENT_LIMITS_REPLY_TOKENS": "64"},
    ),
    Fault(
        name="a reply without end",
        steps=({"fault": "endless", "text": "and then I will look again, "}, MAKES, SAYS),
        chats=3,
        says="repeated itself without end",
    ),
    Fault(
        name="prompt refused as too long, although the profile promised more",
        steps=(
            _calls(_call("shell", command="python3 -c \"print('lorem ipsum dolor ' * 500)\"")),
            MAKES,
            SAYS,
        ),
        chats=0,
        sums_up=True,
        says="the server refused the prompt as too long",
        server={"n_ctx": 4_096, "promised_n_ctx": 32_768},
        arguments=("--allow", "shell(python3 *)"),
    ),
    Fault(
        name="error 503 while the server loads, in the middle of a run",
        steps=({"fault": "loading", "times": 2}, MAKES, SAYS),
        chats=4,
        says="is still loading its model",
    ),
    Fault(
        name="error 429, no more requests for now",
        steps=({"fault": "http_500", "status": 429, "message": "too many requests"}, MAKES, SAYS),
        chats=3,
        says="takes no request now: too many requests",
    ),
    Fault(
        name="error 504 of a proxy that gave up waiting",
        steps=({"fault": "http_500", "status": 504, "message": "Gateway Timeout"}, MAKES, SAYS),
        exit_code=5,
        chats=1,
        says="allow requests more time there",
        made=False,
    ),
    Fault(
        name="template that wants a reply between a result and the next words",
        steps=(_SAME, _THINKS, MAKES, SAYS),
        chats=5,
        says="wants a reply before each new text",
        refuses=_alternates,
    ),
    Fault(
        name="template that takes one call in a reply",
        steps=(_calls(_call("glob", pattern="*"), _call("write", path="made.txt", content=MADE)), SAYS),
        chats=3,
        says="takes one call in a reply",
        refuses=_takes_one_call,
    ),
    Fault(
        name="template that wants ids of nine characters",
        steps=(MAKES, SAYS),
        chats=3,
        says="wants ids of nine characters",
        refuses=_wants_short_ids,
    ),
    Fault(
        name="template that takes none of its marks in a reply",
        steps=({**MAKES, "text": "<|channel|>final<|message|>Now"}, SAYS),
        chats=3,
        says="takes none of its marks in a reply",
        refuses=_takes_no_marks,
    ),
    Fault(
        name="template that fails on the tools",
        steps=(MAKES, _calls(_call("finish", answer="I made it."))),
        chats=3,
        says="replies are bound to a schema instead",
        refuses=_fails_on_tools,
    ),
    Fault(
        name="connection lost in mid-reply",
        steps=({"fault": "drop", "text": "I will make the file now."}, MAKES, SAYS),
        chats=3,
        says="was lost in the middle of a reply",
    ),
    Fault(
        name="connection lost again and again",
        steps=({"fault": "drop", "text": "I will make the file now.", "times": 0},),
        exit_code=5,
        chats=3,
        says="was lost in the middle of a reply",
        made=False,
    ),
    Fault(
        name="bytes that are no reply",
        steps=({"fault": "garbage"}, MAKES, SAYS),
        chats=3,
        says="sent something that is no reply",
    ),
    Fault(
        name="keep-alives for a while, and then the reply",
        steps=({**MAKES, "pings": 20}, SAYS),
        chats=2,
    ),
    Fault(
        name="silence, and nobody answers for the server's health",
        steps=({"fault": "silence", "times": 0},),
        exit_code=5,
        chats=1,
        says="went silent and does not answer /health",
        made=False,
        server={"dies_at": 1},
    ),
)
