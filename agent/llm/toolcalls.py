"""Getting tool calls out of what a model produced: streamed pieces, constrained JSON, or plain text."""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.core.messages import AssistantMessage, Message, ToolCall
from agent.llm.halves import joined


class MalformedCallError(ValueError):
    """A call that must not be executed. The message tells the model what was wrong."""


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    """A number that servers take: they refuse one beyond their range, which Python makes infinite."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large")
    return value


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


_DECODER = json.JSONDecoder(
    strict=False, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
)


@dataclass(slots=True)
class CallPieces:
    """One call as it arrives in a stream: the name first, then the arguments in pieces."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def complete(self, fallback_id: str) -> ToolCall:
        """The call; `fallback_id` is for servers that give none.

        Raises MalformedCallError when it names no tool or the arguments are no JSON object.
        """
        if not self.name:
            raise MalformedCallError(
                "Your tool call names no tool. Nothing was run. Send the whole call again."
            )
        raw = joined(self.arguments).strip() or "{}"
        arguments = _parse_object(raw, self.name)
        return ToolCall(self.id or fallback_id, self.name, arguments, _as_sent_back(raw, arguments))


def complete_calls(pieces: Sequence[CallPieces], id_prefix: str) -> list[ToolCall]:
    """The calls of one reply, each with an id of its own: results are told apart by nothing else.

    Raises MalformedCallError when one of them is unusable; then none of them is run.
    """
    calls: list[ToolCall] = []
    seen: set[str] = set()
    for index, piece in enumerate(pieces):
        call = piece.complete(f"{id_prefix}{index}")
        if call.id in seen:
            call = replace(call, id=f"{id_prefix}{index}")
        seen.add(call.id)
        calls.append(call)
    return calls


def told_apart(reply: AssistantMessage, earlier: Sequence[Message], id_prefix: str) -> AssistantMessage:
    """The reply with ids that no `earlier` call has: some servers count anew in each reply."""
    taken = {call.id for one in earlier if isinstance(one, AssistantMessage) for call in one.tool_calls}
    if not any(call.id in taken for call in reply.tool_calls):
        return reply
    calls = tuple(
        replace(call, id=f"{id_prefix}{index}") if call.id in taken else call
        for index, call in enumerate(reply.tool_calls)
    )
    return replace(reply, tool_calls=calls)


def parse_constrained(text: str, call_id: str) -> ToolCall:
    """Reads a reply that a schema has bound: one object whose `tool` names the tool.

    Raises MalformedCallError when it is none, for instance because the reply was cut.
    """
    record = dict(_parse_object(text, "the tool call"))
    name = record.pop("tool", None)
    if not isinstance(name, str):
        raise MalformedCallError('Your reply has no "tool". Reply with one JSON object that calls a tool.')
    return ToolCall(call_id, name, record, text, in_text=True)


def recover_from_text(text: str, known: Collection[str], id_prefix: str) -> list[ToolCall]:
    """Finds calls that a model wrote into its text: fenced, tagged or bare JSON objects.

    Where there is none, the tags of Qwen3-Coder are calls, too. Only what names a known tool counts. Nothing
    is guessed: an object that is no valid JSON is not a call, apart from doubled braces, which some templates
    show to the model as the form to use.
    """
    calls: list[ToolCall] = []
    for candidate in _json_objects(text):
        call = _as_call(candidate, known, f"{id_prefix}{len(calls)}")
        if call is not None and _is_utf8(call.arguments):
            calls.append(call)
    return calls or _tagged_calls(text, known, id_prefix)


def is_nearly_a_call(text: str, known: Collection[str]) -> bool:
    """Whether `text` has the mark of a call right before the name of a known tool, in whatever form, or
    begins as an object does that is a call.
    """
    names = "|".join(map(re.escape, known))
    if not names or not _CALL_MARK.search(text):
        return False
    return re.search(rf"(?:{_CALL_MARK.pattern})(?:{names})(?=[\"{{<(\[:>\n]| <)", text) is not None


# How the calls of Qwen, Mistral, gpt-oss, DeepSeek, Kimi, GLM and Gemma begin, up to the name of the tool.
_CALL_MARK = re.compile(
    r"(?:<\|?tool_call\w*\|?>|\[TOOL_CALLS\]|<\uff5ctool[^>\n]{1,40}>|\bto=)\s*(?:<function=|call:|functions\."
    r"|function<\uff5c[^>\n]{1,40}>|\[?\s*\{\s*\"(?:name|tool|function)\"\s*:\s*\")?"
    r"|<function=|<invoke name=\"|\A\s*(?:```\w*\s*)?\{\s*\"(?:name|tool|function)\"\s*:\s*\""
)
_TAGGED = re.compile(r"<function=(?P<name>[\w.-]+)>(?P<body>.*?)</function>", re.DOTALL)
_TAGGED_ARGUMENT = re.compile(r"<parameter=(?P<name>[\w.-]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL)


def _tagged_calls(text: str, known: Collection[str], id_prefix: str) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for found in _TAGGED.finditer(text):
        if found["name"] in known and not _TAGGED_ARGUMENT.sub("", found["body"]).strip():
            arguments = {one["name"]: one["value"] for one in _TAGGED_ARGUMENT.finditer(found["body"])}
            if not _is_utf8(arguments):
                continue
            raw = json.dumps(arguments, ensure_ascii=False)
            calls.append(ToolCall(f"{id_prefix}{len(calls)}", found["name"], arguments, raw, in_text=True))
    return calls


_CALL_KEYS = (("name", "arguments"), ("name", "parameters"), ("tool", "arguments"), ("function", "arguments"))


def _as_call(record: Mapping[str, Any], known: Collection[str], call_id: str) -> ToolCall | None:
    if isinstance(record.get("function"), dict):
        record = record["function"]
    for name_key, arguments_key in _CALL_KEYS:
        name, arguments = record.get(name_key), _unquoted(record.get(arguments_key))
        if isinstance(name, str) and name in known and isinstance(arguments, dict):
            return ToolCall(call_id, name, arguments, json.dumps(arguments), in_text=True)
    name = record.get("tool")
    if isinstance(name, str) and name in known:
        arguments = {key: value for key, value in record.items() if key != "tool"}
        return ToolCall(call_id, name, arguments, json.dumps(arguments), in_text=True)
    return None


def _unquoted(arguments: Any) -> Any:
    """Arguments as the object that they are, also where they stand as text, as in OpenAI's own form."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return _DECODER.decode(arguments)
    except (ValueError, RecursionError):
        return None


def _json_objects(text: str) -> Iterator[dict[str, Any]]:
    """All JSON objects that stand in `text`, from left to right, not looking inside of found ones."""
    position = text.find("{")
    while position >= 0:
        record, end = _decode_at(text, position)
        if record is not None:
            yield record
        position = text.find("{", max(end, position + 1))


def _decode_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    try:
        record, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return _decode_doubled(text, start)
    return (record, end) if isinstance(record, dict) else (None, end)


def _decode_doubled(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """`{{"name": …}}`: the outer pair is dropped where exactly that makes it valid."""
    if not text.startswith("{{", start):
        return None, start + 1
    try:
        record, end = _DECODER.raw_decode(text, start + 1)
    except (ValueError, RecursionError):
        return None, start + 2
    closed = text[end : end + 1] == "}"
    return (record, end + 1) if isinstance(record, dict) and closed else (None, start + 2)


def _parse_object(raw: str, what: str) -> Mapping[str, Any]:
    try:
        record = _DECODER.decode(raw)
        _require_utf8(record)
    except json.JSONDecodeError as error:
        raise MalformedCallError(
            f"The arguments of {what} are not valid JSON ({error.msg} at character {error.pos}). "
            "Nothing was run. Send the whole call again."
        ) from None
    except (ValueError, RecursionError):
        # Infinite numbers, halves of surrogate pairs, nesting without end: Python reads them, servers do not.
        raise MalformedCallError(
            f"The arguments of {what} are not valid JSON. Nothing was run. Send the whole call again."
        ) from None
    if not isinstance(record, dict):
        raise MalformedCallError(f"The arguments of {what} are not a JSON object. Send the whole call again.")
    return record


def _require_utf8(record: Any) -> None:
    """Raises ValueError for halves of surrogate pairs."""
    json.dumps(record, ensure_ascii=False).encode("utf-8")


def _is_utf8(record: Any) -> bool:
    try:
        _require_utf8(record)
    except (ValueError, RecursionError):
        return False
    return True


def _as_sent_back(raw: str, arguments: Mapping[str, Any]) -> str:
    """The generated text, unless a server would refuse it in the history: bare line breaks in strings."""
    try:
        json.loads(raw)
    except ValueError:
        return json.dumps(arguments, ensure_ascii=False)
    return raw
