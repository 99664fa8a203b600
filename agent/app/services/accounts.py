"""What fills the context of a session: kinds of messages, in tokens and in seconds of prefill."""

import asyncio
import json
from dataclasses import dataclass

from agent.app.chat.engine import Engine
from agent.app.chat.live import LiveSession
from agent.core.guide import Offer
from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolMessage
from agent.llm.tokens import count_tokens, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPart:
    """`kind` is system, tools, user, assistant, reasoning or results. `seconds` is what evaluating it takes.

    `seconds` is None while this server has evaluated no longer prompt in this session.
    """

    kind: str
    tokens: int
    messages: int
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReport:
    """`used` is what the server counted last (0 = nothing yet), `window` its size in tokens (0 = unknown).

    The parts come to a little less than `used`: the template's own words are in none of them. `is_exact`
    says that the server's tokenizer counted, else they are estimates by length.
    """

    parts: tuple[ContextPart, ...]
    used: int
    window: int
    is_exact: bool

    @property
    def total(self) -> int:
        """Tokens of all parts."""
        return sum(part.tokens for part in self.parts)


async def account_for(live: LiveSession) -> ContextReport:
    """Counts what is in the conversation now."""
    engine = live.keeper.engine
    texts, counts = _by_kind(live.record.conversation.messages, engine)
    tokens = await asyncio.to_thread(_tokens, list(texts.values()), engine)
    exact = tokens is not None
    tokens = tokens if tokens is not None else [estimate(text) for text in texts.values()]
    rate = live.turns.prefill_rate(live.keeper.serving.profile.name)
    parts = tuple(
        ContextPart(kind=kind, tokens=count, messages=counts[kind], seconds=count / rate if rate else None)
        for kind, count in zip(texts, tokens, strict=True)
    )
    window = engine.model.context_tokens if engine else 0
    return ContextReport(parts=parts, used=live.used_tokens, window=window, is_exact=exact)


def _tokens(texts: list[str], engine: Engine | None) -> list[int] | None:
    if engine is None:
        return None
    return count_tokens(engine.endpoint.base_url, engine.endpoint.api_key, texts)


def _by_kind(messages: list[Message], engine: Engine | None) -> tuple[dict[str, str], dict[str, int]]:
    """The text of each kind that is there, and how many messages it is made of."""
    pieces: dict[str, list[str]] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls = [f"{call.name} {call.raw_arguments}" for call in message.tool_calls if not call.in_text]
            pieces.setdefault("assistant", []).append("\n".join([message.text, *calls]))
            if message.reasoning:
                pieces.setdefault("reasoning", []).append(message.reasoning)
        elif isinstance(message, ToolMessage):
            pieces.setdefault("results", []).append("\n".join(filter(None, [message.text, message.note])))
        elif isinstance(message, SystemMessage):
            pieces.setdefault("system", []).append(message.text)
        else:
            pieces.setdefault("user", []).append(message.text)
    if engine is not None:
        tools = engine.protocol.request_fields(Offer()).get("tools")
        if tools:
            pieces["tools"] = [json.dumps(tool) for tool in tools]
        elif "system" in pieces:
            _take_tools_out(pieces, engine)
    return {kind: "\n".join(some) for kind, some in pieces.items()}, {k: len(v) for k, v in pieces.items()}


def _take_tools_out(pieces: dict[str, list[str]], engine: Engine) -> None:
    """With constrained calls the tools are described at the end of the system text."""
    from agent.app.turns.conversation import system_prompt

    text, base = pieces["system"][0], system_prompt()
    if text == engine.system_text and text.startswith(base) and len(text) > len(base):
        pieces["system"], pieces["tools"] = [base], [text[len(base) :]]
