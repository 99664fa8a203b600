"""How much of the slot's context a request takes, and what is left of it for the reply.

A prompt that surely fits is sent without asking. Where it may not, the server counts it: the reply is bounded
to what is left, and a prompt without room for a reply is not sent at all.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent.core.messages import Message
from agent.llm.protocol import to_wire
from agent.llm.tokens import CHARACTERS_PER_TOKEN

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Sends a body to a path of the server and gives the JSON of the answer, None where that failed."""

LEAST_REPLY_TOKENS = 256
"""A reply that may not have so many tokens is hardly ever a whole one."""
# Code and prose have three to four characters a token. So dense texts are rare, and then the server refuses.
_MOST_TOKENS_PER_BYTE = 0.7
_PICTURE_TOKENS = 1_024


class Window:
    """The context window of a slot: `tokens` (0 = unknown), and what the conversation `used` last.

    `asked` is the size of the last prompt that had to be counted.
    """

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.used = 0
        self.asked = 0
        self._counted: tuple[Message, ...] = ()
        self._counts_bodies = True

    def learn(self, tokens: int) -> None:
        """The server has said that it is no larger than this."""
        if tokens > 0:
            self.tokens = min(self.tokens, tokens) if self.tokens > 0 else tokens

    def replied(self, messages: Sequence[Message], used: int) -> None:
        """`messages`, a reply included if one stays, take up `used` tokens."""
        self.used = used
        self._counted = tuple(messages)

    async def room(self, request: Mapping[str, Any], messages: Sequence[Message], ask: Ask) -> int | None:
        """The tokens that are left for the reply; None where the window is not known.

        0 or less means that the prompt does not fit.
        """
        if self.tokens <= 0:
            return None
        wanted = int(request.get("max_tokens") or request.get("max_completion_tokens") or 0)
        known, fresh = self._split(request, messages)
        if known + fresh * _MOST_TOKENS_PER_BYTE + wanted <= self.tokens:
            return wanted
        counted = await self._count(request, ask)
        if counted is None:
            counted = known + round(fresh / CHARACTERS_PER_TOKEN)
        self.asked = counted
        return min(wanted, self.tokens - counted)

    def _split(self, request: Mapping[str, Any], messages: Sequence[Message]) -> tuple[int, int]:
        """Tokens of the part that has been counted, and bytes of the rest."""
        seen = len(self._counted)
        extends = 0 < seen <= len(messages) and all(
            one is other for one, other in zip(self._counted, messages, strict=False)
        )
        if extends:
            return self.used, sum(_size(record) for record in to_wire(messages[seen:]))
        tools = len(str(request.get("tools", "")).encode("utf-8", "replace"))
        return 0, tools + sum(_size(record) for record in request["messages"])

    async def count(self, request: Mapping[str, Any], ask: Ask) -> int:
        """Tokens of the prompt of a request, estimated where the server does not count them."""
        counted = await self._count(request, ask)
        if counted is not None:
            return counted
        _, size = self._split(request, ())
        return round(size / CHARACTERS_PER_TOKEN)

    async def _count(self, request: Mapping[str, Any], ask: Ask) -> int | None:
        body = {name: request[name] for name in ("model", "messages", "tools") if name in request}
        if "chat_template_kwargs" in request:
            body["chat_template_kwargs"] = request["chat_template_kwargs"]
        if self._counts_bodies:
            count = _number(await ask("/v1/chat/completions/input_tokens", body), "input_tokens")
            if count is not None:
                return count
            self._counts_bodies = False  # builds before it was added, forks and other engines
        rendered = await ask("/apply-template", body)
        prompt = rendered.get("prompt") if isinstance(rendered, Mapping) else None
        if not isinstance(prompt, str):
            return None
        told = await ask("/tokenize", {"content": prompt, "add_special": True, "parse_special": True})
        tokens = told.get("tokens") if isinstance(told, Mapping) else None
        return len(tokens) if isinstance(tokens, list) else None


def _number(said: Any, name: str) -> int | None:
    value = said.get(name) if isinstance(said, Mapping) else None
    return value if isinstance(value, int) and value > 0 else None


def _size(record: Mapping[str, Any]) -> int:
    """Bytes of a message that become tokens; a picture counts by what models make of one."""
    content = record.get("content") or ""
    if isinstance(content, str):
        size = len(content.encode("utf-8", "replace"))
    else:
        parts = (str(part.get("text", "")) for part in content)
        pictures = sum("text" not in part for part in content)
        size = sum(len(part.encode("utf-8", "replace")) for part in parts)
        size += int(pictures * _PICTURE_TOKENS / _MOST_TOKENS_PER_BYTE)
    size += len(str(record.get("reasoning_content") or "").encode("utf-8", "replace"))
    return size + len(str(record.get("tool_calls") or ""))
