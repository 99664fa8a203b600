"""Getting tool calls out of what a model produced: streamed pieces, constrained JSON, or plain text."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
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

    def complete(self, fallback_id: str, known: Collection[str] = ()) -> ToolCall:
        """The call; `fallback_id` is for servers that give none, `known` are names of tools.

        Raises MalformedCallError when it names no tool or the arguments are no JSON object.
        """
        if not self.name:
            raise MalformedCallError(
                "Your tool call names no tool. Nothing was run. Send the whole call again."
            )
        raw = joined(self.arguments).strip() or "{}"
        name = _as_told(self.name, known)
        arguments = _parse_object(raw, name)
        return ToolCall(self.id or fallback_id, name, arguments, _as_sent_back(raw, arguments))


def _as_told(name: str, known: Collection[str]) -> str:
    """The name as the model was told it: gpt-oss has all tools in a namespace of its template, and where a
    server does not take a call of its apart, marks of the template get into the name.
    """
    plain = name.partition("<|")[0].strip()
    bare = plain.removeprefix("functions.")
    return bare if bare in known else plain or name


def complete_calls(
    pieces: Sequence[CallPieces], id_prefix: str, known: Collection[str] = ()
) -> list[ToolCall]:
    """The calls of one reply, each with an id of its own: results are told apart by nothing else.

    Raises MalformedCallError when one of them is unusable; then none of them is run.
    """
    calls: list[ToolCall] = []
    seen: set[str] = set()
    for index, piece in enumerate(pieces):
        call = piece.complete(f"{id_prefix}{index}", known)
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
    """Finds calls that a model wrote into its text: JSON objects, fenced or bare, or tags of Qwen3-Coder.

    Only what names a known tool counts. Nothing is guessed: an object that is no valid JSON is not a call,
    apart from doubled braces, which some templates show to the model as the form to use. What stands in an
    argument of a call is none, and neither is what follows a result that the model made up. Beside a call
    that cannot be read none is run.
    """
    written = _written_calls(text, known)
    if not written or is_nearly_a_call(_without(text, written), known):
        return []
    return [
        ToolCall(f"{id_prefix}{place}", one.name, one.arguments, _as_json(one.arguments), in_text=True)
        for place, one in enumerate(written)
    ]


def parted_from_thoughts(text: str, known: Collection[str]) -> tuple[str, str]:
    """Thoughts that a server has left in the text of a reply, and what is said after them.

    Models think about calls that they then don't make, so the first part is only looked at to tell why
    there is no answer.
    """
    begun = _OPENED_THOUGHTS.match(text)
    if begun:
        return begun[0], text[begun.end() :]
    ended = _END_OF_THOUGHTS.search(text)
    if ended and not any(one.start < ended.end() < one.end for one in _written_calls(text, known)):
        return text[: ended.end()], text[ended.end() :]
    return "", text


_OPENED_THOUGHTS = re.compile(r"\s*(?:<think>.*?(?:</think>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z))", re.DOTALL)
# Where the template has opened them only their end is in the reply, on a line of its own.
_END_OF_THOUGHTS = re.compile(r"^[ \t]*(?:</think>|\[/THINK\])[ \t]*$", re.MULTILINE)


def is_nearly_a_call(text: str, known: Collection[str]) -> bool:
    """Whether `text` has the mark of a call right before the name of a known tool, in whatever form, or
    begins as an object does that is a call.
    """
    names = "|".join(map(re.escape, known))
    if not names or not _CALL_MARK.search(text):
        return False
    said = text.partition(_RESULT_MARK)[0]
    behind = r"(?=[\"'{<(\[:>\n]|\.call\(| (?:<|json|code|\{))"
    return re.search(rf"(?:{_CALL_MARK.pattern})(?:{names}){behind}", said) is not None


# How the calls of Qwen, Mistral, gpt-oss, DeepSeek, Kimi, GLM, Gemma, Llama, LFM, Nemotron and Command begin,
# up to the name of the tool.
_NAME_KEY = r"[\"'](?:name|tool|function|tool_name)[\"']\s*:\s*[\"']"
_CALL_MARK = re.compile(
    r"(?:<\|?tool_call\w*\|?>|<TOOLCALL>|\[TOOL_CALLS\]|<\uff5ctool[^>\n]{1,40}>|<\|python_tag\|>|<\|START_ACTION\|>"
    r"|```tool_code\b|\bto=)\s*(?:<function=|call:|functions\.|function<\uff5c[^>\n]{1,40}>"
    rf"|\[?\s*\{{\s*(?:[\"'](?:arguments|parameters)[\"'][^<]{{1,4000}}?)?{_NAME_KEY}|\[)?"
    r"|<function=|<function name=\"|<(?:\uff5cDSML\uff5c)?invoke name=\""
    rf"|\A\s*(?:```\w*\s*)?\{{\s*(?:\"tool_calls\"\s*:\s*\[[^<]{{1,200}}?)?{_NAME_KEY}"
)
_RESULT_MARK = "<tool_response>"
_BEGINNING = re.compile(
    rf"\{{|<function=|<arg_value>|<(?:\uff5cDSML\uff5c)?invoke\b|<function name=|{_RESULT_MARK}"
)
_TAGGED = re.compile(r"<function=(?P<name>[\w.-]+)>(?P<body>.*?)</function>", re.DOTALL)
_TAGGED_ARGUMENT = re.compile(r"<parameter=(?P<name>[\w.-]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Written:
    """A call in the text from `start` to `end`."""

    start: int
    end: int
    name: str
    arguments: dict[str, Any]


def _written_calls(text: str, known: Collection[str]) -> list[_Written]:
    """From left to right, not looking inside of what was read, nor of a call that cannot be read."""
    calls: list[_Written] = []
    position = 0
    while (begins := _BEGINNING.search(text, position)) and begins[0] != _RESULT_MARK:
        start = begins.start()
        if begins[0] == "{":
            record, position = _decode_at(text, start)
            named = _as_call(record, known) if record is not None else None
            if record is None and _BROKEN_CALL.match(text, start):
                position = max(position, _end_of_braces(text, start))
        elif begins[0] == "<function=":
            named, position = _tagged_at(text, start, known)
        else:
            named, position = None, _end_of_tag(text, begins)
        if named is not None and _is_utf8(named[1]):
            calls.append(_Written(start, position, *named))
    return calls


_BROKEN_CALL = re.compile(rf"\{{\s*{_NAME_KEY}")
_BRACE_OR_TEXT = re.compile(r'[{}]|"(?:[^"\\]|\\.)*"?', re.DOTALL)


def _end_of_braces(text: str, start: int) -> int:
    """Behind the brace that closes the one at `start`, or the end of the text."""
    depth = 0
    for found in _BRACE_OR_TEXT.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    return len(text)


def _end_of_tag(text: str, begins: re.Match[str]) -> int:
    """Behind the tag that closes an argument or another form of call; what is in there is not read."""
    closing = "</function>" if begins[0].startswith("<function") else f"</{begins[0][1:].rstrip('>')}>"
    end = text.find(closing, begins.end())
    return begins.end() if end < 0 else end + len(closing)


def _tagged_at(
    text: str, start: int, known: Collection[str]
) -> tuple[tuple[str, dict[str, Any]] | None, int]:
    found = _TAGGED.match(text, start)
    if found is None:
        return None, start + 1
    if found["name"] not in known or _TAGGED_ARGUMENT.sub("", found["body"]).strip():
        return None, found.end()
    arguments = {one["name"]: one["value"] for one in _TAGGED_ARGUMENT.finditer(found["body"])}
    return (found["name"], arguments), found.end()


def _without(text: str, calls: Sequence[_Written]) -> str:
    """`text` with blanks in the place of the calls."""
    pieces, position = [], 0
    for one in calls:
        pieces += [text[position : one.start], " "]
        position = one.end
    return "".join([*pieces, text[position:]])


def _as_json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


_CALL_KEYS = (
    *(("name", "arguments"), ("name", "parameters"), ("tool", "arguments"), ("function", "arguments")),
    *(("tool_name", "parameters"), ("tool_name", "arguments")),
)


def _as_call(record: Mapping[str, Any], known: Collection[str]) -> tuple[str, dict[str, Any]] | None:
    if isinstance(record.get("function"), dict):
        record = record["function"]
    for name_key, arguments_key in _CALL_KEYS:
        name, arguments = record.get(name_key), _unquoted(record.get(arguments_key))
        if isinstance(name, str) and name in known and isinstance(arguments, dict):
            return name, arguments
    name = record.get("tool")
    if isinstance(name, str) and name in known:
        return name, {key: value for key, value in record.items() if key != "tool"}
    return None


def _unquoted(arguments: Any) -> Any:
    """Arguments as the object that they are, also where they stand as text, as in OpenAI's own form."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return _DECODER.decode(arguments)
    except (ValueError, RecursionError):
        return None


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
