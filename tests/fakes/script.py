"""What the scripted server answers: one `Step` per chat request, written in Python or as JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, cast, get_args

Fault = Literal[
    "http_500",  # an error instead of a reply, before the first byte
    "overflow",  # 400 exceed_context_size_error
    "loading",  # 503 as while a model is loaded
    "drop",  # the connection breaks in the middle of the reply
    "error_event",  # an error object in the middle of the reply
    "garbage",  # bytes that are neither UTF-8 nor JSON
    "silence",  # no byte at all until the client gives up
    "pings",  # a started stream that holds `text`, and then nothing but keep-alive comments
    "endless",  # `text` again and again, until max_tokens or until the client leaves
]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. Arguments given as text are sent as they are, so they can be malformed."""

    name: str
    arguments: Mapping[str, Any] | str

    @property
    def raw_arguments(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The answer to one chat request.

    `chunks` replaces everything else: objects become `data:` lines, text is written as it is.
    `times` is the number of requests in a row that get this step, 0 for all that follow.
    `drafted` and `accepted` appear in `timings` as draft_n and draft_n_accepted. `message` is the text
    of an error, `status` that of an "http_500" which is another one, `n_ctx` the size that an overflow
    reports. `tokens_per_second` is how quickly the reply is written, 0 for at once; `pings` is how many
    keep-alive comments come before it. With `piece_characters` the text comes in pieces of that length;
    those of the fake tokenizer are half as long as a model's.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Call, ...] = ()
    chunks: tuple[Mapping[str, Any] | str, ...] = ()
    fault: Fault | None = None
    finish_reason: str = ""
    times: int = 1
    drafted: int = 0
    accepted: int = 0
    message: str = ""
    status: int = 500
    n_ctx: int = 0
    tokens_per_second: float = 0.0
    pings: int = 0
    piece_characters: int = 0


StepLike = Step | Mapping[str, Any] | str
Script = Sequence[StepLike | Callable[[Mapping[str, Any]], StepLike]]


def call(name: str, /, **arguments: Any) -> Step:
    """A step that calls one tool."""
    return Step(tool_calls=(Call(name, arguments),))


def parse_step(raw: StepLike) -> Step:
    """Text stands for a step that says it; a mapping has the fields of `Step`.

    Raises ValueError for unknown fields or faults, so that a script with a slip cannot pass for another one.
    """
    if isinstance(raw, Step):
        return raw
    if isinstance(raw, str):
        return Step(text=raw)
    known = {field.name for field in fields(Step)}
    if unknown := sorted(raw.keys() - known):
        raise ValueError(f"a step has no {', '.join(unknown)}; it has {', '.join(sorted(known))}")
    values = dict(raw)
    if values.get("fault") not in (None, *get_args(Fault)):
        raise ValueError(f"there is no fault {values['fault']!r}; there are {', '.join(get_args(Fault))}")
    values["tool_calls"] = tuple(_parse_call(item) for item in values.get("tool_calls", ()))
    values["chunks"] = tuple(values.get("chunks", ()))
    return Step(**values)


def _parse_call(raw: Call | Mapping[str, Any]) -> Call:
    return raw if isinstance(raw, Call) else Call(raw["name"], raw.get("arguments", {}))


def load_script(path: Path) -> list[Step]:
    """Reads a JSON file that holds a list of steps."""
    steps = json.loads(path.read_text(encoding="utf-8"))
    return [parse_step(cast("StepLike", step)) for step in steps]


def constrained_text(schema: Mapping[str, Any], wanted: Call, said: str) -> str | None:
    """The call as JSON that satisfies a `response_format` schema, None where no branch names the tool.

    It looks for the object in which a constant is the tool's name and puts the arguments beside it or
    into a nested object, whichever the schema asks for. Required texts that are no argument get `said`.
    """
    value = _fill(schema, wanted, said)
    return None if value is None else json.dumps(value)


def _fill(schema: Mapping[str, Any], wanted: Call, said: str) -> dict[str, Any] | None:
    for branch in [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        if (value := _fill(branch, wanted, said)) is not None:
            return value
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    value = {}
    found = False
    arguments = json.loads(wanted.raw_arguments)
    for name, part in properties.items():
        if part.get("const") == wanted.name or part.get("enum") == [wanted.name]:
            found, value[name] = True, wanted.name
        elif name in arguments:
            value[name] = arguments[name]
        elif (inner := _fill(part, wanted, said)) is not None:
            found, value[name] = True, inner
        elif part.get("type") == "object":
            value[name] = arguments
        elif part.get("type") == "string" and name in required:
            value[name] = said
    return value if found else None
