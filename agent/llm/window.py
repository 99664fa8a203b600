"""How much of the slot's context a request takes, and what is left of it for the reply.

A prompt that surely fits is sent without asking. Where it may not, the server counts it: the reply is bounded
to what is left, and a prompt without room for a reply is not sent at all.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.core import trimming
from agent.core.messages import Message
from agent.llm.protocol import to_wire

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
        if known + fresh.most_tokens + wanted <= self.tokens:
            return wanted
        counted = await self._count(request, ask)
        if counted is None:
            counted = known + fresh.tokens
        self.asked = counted
        return min(wanted, self.tokens - counted)

    def _split(self, request: Mapping[str, Any], messages: Sequence[Message]) -> tuple[int, "_Uncounted"]:
        """Tokens of the part that has been counted, and the rest."""
        seen = len(self._counted)
        extends = 0 < seen <= len(messages) and all(
            one is other for one, other in zip(self._counted, messages, strict=False)
        )
        if extends:
            return self.used, _uncounted(to_wire(messages[seen:]))
        return 0, _uncounted(request["messages"], str(request.get("tools", "")))

    async def count(self, request: Mapping[str, Any], ask: Ask) -> int:
        """Tokens of the prompt of a request, estimated where the server does not count them."""
        counted = await self._count(request, ask)
        if counted is not None:
            return counted
        return self._split(request, ())[1].tokens

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


@dataclass(frozen=True, slots=True)
class _Uncounted:
    """A part of a request that no server has counted; a picture counts by what models make of one."""

    text: str
    pictures: int

    @property
    def most_tokens(self) -> float:
        size = len(self.text.encode("utf-8", "replace"))
        return size * _MOST_TOKENS_PER_BYTE + self.pictures * _PICTURE_TOKENS

    @property
    def tokens(self) -> int:
        return trimming.careful_estimate(self.text) + self.pictures * _PICTURE_TOKENS


def _uncounted(records: Sequence[Mapping[str, Any]], tools: str = "") -> _Uncounted:
    texts, pictures = [tools], 0
    for record in records:
        content = record.get("content") or ""
        parts = [{"text": content}] if isinstance(content, str) else content
        texts += [str(part.get("text", "")) for part in parts]
        pictures += sum("text" not in part for part in parts)
        texts += [str(record.get("reasoning_content") or ""), str(record.get("tool_calls") or "")]
    return _Uncounted("".join(texts), pictures)
