"""What local models and servers do wrong, as scripts for the scripted server, each with its one outcome.

The tests play them through `agent run`, and `python -m benchmarks.recovery` prints them as a table. All of
them are the same small task: make `made.txt`. Nothing else may be written, whatever arrives.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. `steps` are replies, `server` settings of the scripted server.

    `exit_code` is how the run ends, `chats` how many requests it makes (0: not counted) and `says` what
    people read. `made` is whether the file is there then. With `sums_up` requests for a summary may come in
    between.
    """

    name: str
    steps: tuple[Mapping[str, Any], ...]
    chats: int
    exit_code: int = 0
    says: str = ""
    made: bool = True
    server: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    sums_up: bool = False

    def script(self) -> list[Any]:
        """What the scripted server is given; each run needs its own."""
        if not self.sums_up:
            return list(self.steps)
        remaining = iter(self.steps)

        def answer(body: Mapping[str, Any]) -> Mapping[str, Any]:
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
        name="call cut by the limit of tokens",
        steps=(_calls({"name": "write", "arguments": _BAD_JSON}, finish_reason="length"), MAKES, SAYS),
        chats=3,
        says="cut off",
        server={"strict": True},
    ),
    Fault(name="call in the text", steps=({"text": _TAGGED}, SAYS), chats=2),
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
