"""Two ways for a model to call tools, and the single place where a conversation becomes a request.

*Native*: the tools go along as `tools`, the server renders them with the model's template and parses the
calls. *Constrained*: the tools are described in the system text, and a JSON schema with one branch per tool
binds every reply (`response_format`). Small models and some templates only manage the second.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agent.core.control_tokens import RESULT_END, disarmed, disarmed_schema
from agent.core.events import TextDelta, ToolCallDelta
from agent.core.guide import Offer
from agent.core.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agent.core.schema import parameters_schema
from agent.core.tool import Tool
from agent.llm.blocks import block_grammar, parse_block
from agent.llm.pictures import EncodedPictures, joined, with_pictures
from agent.llm.toolcalls import (
    CallPieces,
    MalformedCallError,
    complete_calls,
    is_nearly_a_call,
    parse_constrained,
    parted_from_thoughts,
    recover_from_text,
)

EMPTY_REPLY = "Your reply was empty. Call a tool, or give your answer."
CUT_REPLY = "Your reply was cut off because it was too long. Nothing was run. Do it in smaller pieces."
CALL_AS_TEXT = (
    "Your tool call stood in your answer as text that cannot be read. Nothing was run. Send it again."
)
CALL_IN_THOUGHTS = "Your tool call stood in your thoughts, where nothing is run. Send it again after them."


class ToolProtocol(Protocol):
    name: str

    def system_text(self, base: str) -> str:
        """The system message: `base`, and whatever the protocol has to say about tools."""
        ...

    def described(self) -> Mapping[str, str]:
        """What the prompt says of each tool, by its name and in the order in which it says it."""
        ...

    def request_fields(self, offer: Offer) -> dict[str, Any]:
        """What goes along with the messages. What is part of the prompt never depends on `offer`."""
        ...

    def delta(self, text: str) -> TextDelta | ToolCallDelta:
        """How a piece of the reply's content is shown while it streams."""
        ...

    def read_reply(
        self, text: str, reasoning: str, pieces: Sequence[CallPieces], *, cut: bool, number: int
    ) -> tuple[AssistantMessage, str]:
        """The finished reply, and what is wrong with it ("" if nothing).

        `number` makes the ids of calls in text unique within the session.
        """
        ...


class NativeProtocol:
    """Tools as the server's chat template renders them."""

    name = "native"

    def __init__(self, tools: Sequence[Tool]) -> None:
        # A plain text reply ends a turn here, so no tool is needed to say so.
        offered = [tool for tool in tools if tool.access != "finish"]
        self._names = {tool.name for tool in offered}
        self._schemas = [_native_schema(tool) for tool in offered]

    def system_text(self, base: str) -> str:
        return base

    def described(self) -> Mapping[str, str]:
        return {one["function"]["name"]: json.dumps(one, ensure_ascii=False) for one in self._schemas}

    def request_fields(self, offer: Offer) -> dict[str, Any]:
        return {"tools": self._schemas, "tool_choice": "auto"} if self._schemas else {}

    def delta(self, text: str) -> TextDelta | ToolCallDelta:
        return TextDelta(text=text)

    def read_reply(
        self, text: str, reasoning: str, pieces: Sequence[CallPieces], *, cut: bool, number: int
    ) -> tuple[AssistantMessage, str]:
        plain = AssistantMessage(text, reasoning)
        if cut:
            return plain, CUT_REPLY
        try:
            calls = complete_calls(pieces, f"call-{number}-", self._names)
        except MalformedCallError as error:
            return plain, str(error)
        thoughts, said = parted_from_thoughts(text, self._names)
        if not calls:
            calls = recover_from_text(said, self._names, f"text-{number}-")
        if not calls and is_nearly_a_call(said, self._names):
            return plain, CALL_AS_TEXT  # or it would pass for an answer, and the work for done
        if not calls and not said.strip():
            # A call among thoughts may be one that the model only considered, so it is asked for again.
            in_thoughts = self._has_a_call(reasoning) or self._has_a_call(thoughts)
            return plain, CALL_IN_THOUGHTS if in_thoughts else EMPTY_REPLY
        return AssistantMessage(text, reasoning, tuple(calls)), ""

    def _has_a_call(self, thoughts: str) -> bool:
        return bool(recover_from_text(thoughts, self._names, "")) or is_nearly_a_call(thoughts, self._names)


class ConstrainedProtocol:
    """One JSON object per reply, bound by a schema; or a file as a block behind it, bound by a grammar."""

    name = "constrained"

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = list(tools)
        self._parameters = {tool.name: parameters_schema(tool.params) for tool in tools}

    def system_text(self, base: str) -> str:
        rule = "Reply with one JSON object that calls one tool (? marks what may be left out):"
        return "\n".join([f"{base}\n", rule, *self.described().values()])

    def described(self) -> Mapping[str, str]:
        return {tool.name: _signature(tool, self._parameters[tool.name]) for tool in self._tools}

    def request_fields(self, offer: Offer) -> dict[str, Any]:
        if not self._tools:
            return {}
        if offer.blocks:
            return {"grammar": block_grammar(offer)}
        branches = [
            _constrained_branch(name, parameters, offer.paths.get(name, ()), plain=offer.plain)
            for name, parameters in self._parameters.items()
            if offer.tools is None or name in offer.tools
        ]
        schema = {"name": "tool_call", "strict": True, "schema": {"anyOf": branches}}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    def delta(self, text: str) -> TextDelta | ToolCallDelta:
        return ToolCallDelta(text=text)

    def read_reply(
        self, text: str, reasoning: str, pieces: Sequence[CallPieces], *, cut: bool, number: int
    ) -> tuple[AssistantMessage, str]:
        plain = AssistantMessage(text, reasoning)
        if cut:
            return plain, CUT_REPLY
        if not text.strip():
            return plain, EMPTY_REPLY
        try:
            call = parse_block(text, f"call-{number}") or parse_constrained(text, f"call-{number}")
        except MalformedCallError as error:
            return plain, str(error)
        return AssistantMessage(text, reasoning, (call,)), ""


def to_wire(messages: Sequence[Message], encoded: EncodedPictures | None = None) -> list[dict[str, Any]]:
    """Messages as the chat completions API takes them.

    Neighbouring user texts become one message, because many templates insist on alternating roles.
    What has no UTF-8 form, such as parts of undecodable file names, becomes question marks. `encoded` has
    images of earlier requests; those that it lacks are read from their files.
    """
    encoded = encoded or EncodedPictures()
    wire: list[dict[str, Any]] = []
    in_text: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            in_text.update(call.id for call in message.tool_calls if call.in_text)
        record = _wire_message(message, in_text, encoded)
        if wire and record["role"] == "user" == wire[-1]["role"]:
            wire[-1] = {"role": "user", "content": joined(wire[-1]["content"], record["content"])}
        else:
            wire.append(record)
    return wire


def _wire_message(message: Message, in_text: set[str], encoded: EncodedPictures) -> dict[str, Any]:
    if isinstance(message, AssistantMessage):
        return _wire_assistant(message)
    if isinstance(message, SystemMessage):
        return {"role": "system", "content": _encodable(message.text)}
    text = disarmed(_encodable(message.text))
    if isinstance(message, UserMessage):
        return {"role": "user", "content": with_pictures(text, message.pictures, encoded)}
    if message.call_id in in_text:
        return {"role": "user", "content": f"Result of {message.tool_name}:\n{_closed(message, text)}"}
    content = _closed(message, text) if message.note else text
    return {"role": "tool", "tool_call_id": message.call_id, "content": content}


def _closed(message: ToolMessage, text: str) -> str:
    """A result with the mark of its end, which `text` cannot hold any more, and our own words behind that."""
    note = disarmed(_encodable(message.note))
    return f"{text}\n{RESULT_END}\n\n{note}" if note else f"{text}\n{RESULT_END}"


def _wire_assistant(message: AssistantMessage) -> dict[str, Any]:
    record: dict[str, Any] = {"role": "assistant", "content": _encodable(message.text)}
    if message.reasoning:
        record["reasoning_content"] = _encodable(message.reasoning)
    native = [_wire_call(call) for call in message.tool_calls if not call.in_text]
    if native:
        record["tool_calls"] = native
    return record


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _wire_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.raw_arguments}
    return {"id": call.id, "type": "function", "function": function}


def _native_schema(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": disarmed(tool.description),
        "parameters": disarmed_schema(parameters_schema(tool.params)),
    }
    return {"type": "function", "function": function}


def _constrained_branch(
    name: str, parameters: Mapping[str, Any], paths: Sequence[str], *, plain: bool
) -> dict[str, Any]:
    required = parameters.get("required", [])
    properties = {
        field: schema
        for field, schema in parameters.get("properties", {}).items()
        if field in required or not plain
    }
    if paths and "path" in properties:
        properties["path"] = {"enum": list(paths)}
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, **properties},
        "required": ["tool", *required],
        "additionalProperties": False,
    }


def _signature(tool: Tool, parameters: Mapping[str, Any]) -> str:
    required = set(parameters.get("required", []))
    fields = [f'"tool": "{tool.name}"']
    for name, schema in parameters.get("properties", {}).items():
        kind = schema.get("type", "string")
        fields.append(f'"{name}{"" if name in required else "?"}": {kind}')
    return f"{{{', '.join(fields)}}} {disarmed(tool.description)}"
