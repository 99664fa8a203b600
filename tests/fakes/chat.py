"""How the scripted server turns a request into a prompt and a step into the chunks of a reply.

The prompt is ChatML and its tokens are short pieces of text: cheap and always the same. What is counted
with them (cache share, growth per step, overflow) is as honest as with a real tokenizer, only the
absolute numbers are not a model's.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from tests.fakes.script import Call, Step, constrained_text

_PIECE = re.compile(r"<\|\w+\|>|[^\W_]{1,4}|\s+|[\W_]")
_PREFILL_PER_SECOND = 1000.0
_DECODE_PER_SECOND = 100.0
BUILD = "b0-scripted"


def tokenize(text: str) -> list[str]:
    """Pieces of at most four letters; joined they are the text again."""
    return _PIECE.findall(text)


def token_id(piece: str) -> int:
    return zlib.crc32(piece.encode("utf-8", "surrogatepass")) % 150_000


def common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def render_prompt(body: Mapping[str, Any]) -> str:
    """The request as ChatML: tools, then the messages, then the opening of the reply."""
    parts = []
    if tools := body.get("tools"):
        parts.append(f"<|im_start|>system\n# Tools\n{json.dumps(tools)}<|im_end|>\n")
    for message in body["messages"]:
        text = _content(message.get("content"))
        if message["role"] == "assistant":
            calls = [
                Call(item["function"]["name"], item["function"]["arguments"])
                for item in message.get("tool_calls") or ()
            ]
            text = render_reply(text, message.get("reasoning_content") or "", calls)
        parts.append(f"<|im_start|>{message['role']}\n{text}<|im_end|>\n")
    return "".join(parts) + "<|im_start|>assistant\n"


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())


def render_reply(text: str, reasoning: str, calls: Sequence[Call]) -> str:
    """A reply as the slot holds it; the same for one that was generated and one in the history."""
    thought = f"<think>\n{reasoning}\n</think>\n" if reasoning else ""
    blocks = [f"\n<tool_call>\n{call.name} {call.raw_arguments}\n</tool_call>" for call in calls]
    return thought + text + "".join(blocks)


@dataclass(frozen=True, slots=True)
class Reply:
    """One step, fitted to one request: what a call looks like, and where max_tokens cuts."""

    text: str
    reasoning: str
    calls: tuple[Call, ...]
    finish_reason: str

    @property
    def rendered(self) -> str:
        return render_reply(self.text, self.reasoning, self.calls)


def reply_to(body: Mapping[str, Any], step: Step) -> Reply:
    """Calls become JSON text when the request binds the reply to a schema, as in the real server.

    Raises ValueError when the schema has no branch for the scripted call.
    """
    text, calls = step.text, step.tool_calls
    schema = _reply_schema(body)
    if calls and schema:
        constrained = constrained_text(schema, calls[0], step.text)
        if constrained is None:
            raise ValueError(f"the response_format has no branch for {calls[0].name}")
        text, calls = constrained, ()
    reason = step.finish_reason or ("tool_calls" if calls else "stop")
    limit = _token_limit(body)
    pieces = tokenize(text)
    if limit is not None and len(pieces) > limit:
        text, reason = "".join(pieces[:limit]), "length"
    return Reply(text, step.reasoning, calls, reason)


def _token_limit(body: Mapping[str, Any]) -> int | None:
    for name in ("max_tokens", "max_completion_tokens", "n_predict"):
        if isinstance(value := body.get(name), int) and value >= 0:
            return value
    return None


def _reply_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    wanted = body.get("response_format") or {}
    schema = (
        (wanted.get("json_schema") or {}).get("schema") or wanted.get("schema") or body.get("json_schema")
    )
    return schema if isinstance(schema, Mapping) else None


def deltas(reply: Reply, request_number: int, piece_characters: int = 0) -> Iterator[dict[str, Any]]:
    """The role, then thoughts, text and calls in pieces of one token, or of `piece_characters` for text."""
    yield {"role": "assistant", "content": None}
    for piece in tokenize(reply.reasoning):
        yield {"reasoning_content": piece}
    for piece in _cut(reply.text, piece_characters) if piece_characters else tokenize(reply.text):
        yield {"content": piece}
    for index, call in enumerate(reply.calls):
        first, rest = call.raw_arguments[:1], call.raw_arguments[1:]
        identity = f"call{request_number:014d}{index:014d}"
        function = {"name": call.name, "arguments": first}
        yield {"tool_calls": [{"index": index, "id": identity, "type": "function", "function": function}]}
        for piece in tokenize(rest):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@dataclass(frozen=True, slots=True)
class Figures:
    """Token counts of one request, and the times a server of fixed speed would need."""

    cached: int
    evaluated: int
    predicted: int
    drafted: int
    accepted: int

    @property
    def timings(self) -> dict[str, float]:
        prompt_ms = self.evaluated / _PREFILL_PER_SECOND * 1000
        predicted_ms = self.predicted / _DECODE_PER_SECOND * 1000
        drafts = {"draft_n": self.drafted, "draft_n_accepted": self.accepted} if self.drafted else {}
        return {
            "cache_n": self.cached,
            "prompt_n": self.evaluated,
            "prompt_ms": prompt_ms,
            "prompt_per_token_ms": 1000 / _PREFILL_PER_SECOND,
            "prompt_per_second": _PREFILL_PER_SECOND,
            "predicted_n": self.predicted,
            "predicted_ms": predicted_ms,
            "predicted_per_token_ms": 1000 / _DECODE_PER_SECOND,
            "predicted_per_second": _DECODE_PER_SECOND,
            **drafts,
        }

    @property
    def usage(self) -> dict[str, Any]:
        prompt = self.cached + self.evaluated
        return {
            "prompt_tokens": prompt,
            "completion_tokens": self.predicted,
            "total_tokens": prompt + self.predicted,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }

    @property
    def progress(self) -> list[dict[str, float]]:
        """`prompt_progress` of a prefill that is seen at its start, half-way and at its end."""
        total = self.cached + self.evaluated
        seen = (self.cached, self.cached + self.evaluated // 2, total)
        return [
            {
                "total": total,
                "cache": self.cached,
                "processed": processed,
                "time_ms": (processed - self.cached) / _PREFILL_PER_SECOND * 1000,
            }
            for processed in seen
        ]


def request_problem(body: Mapping[str, Any], *, strict: bool) -> tuple[int, str, str] | None:
    """What the real server refuses about a request: status, type and message.

    `strict` refuses a history with malformed arguments for as long as it holds them, as the server does
    with templates that take arguments as objects.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return 400, "invalid_request_error", "'messages' is required"
    for message in messages:
        if message["role"] != "assistant" and "content" not in message:
            return 400, "invalid_request_error", "All non-assistant messages must contain 'content'"
    if [message["role"] for message in messages[-2:]] == ["assistant", "assistant"]:
        text = "Cannot have 2 or more assistant messages at the end of the list."
        return 400, "invalid_request_error", text
    if strict and (bad := _malformed_arguments(messages)):
        return 500, "server_error", f"Failed to parse tool call arguments as JSON: {bad}"
    return None


def _malformed_arguments(messages: Sequence[Mapping[str, Any]]) -> str | None:
    for message in messages:
        for item in message.get("tool_calls") or ():
            try:
                json.loads(item["function"]["arguments"])
            except ValueError as error:
                return str(error)
    return None
