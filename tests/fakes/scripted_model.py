"""A model that answers from a script, for tests of the turn loop that need no server."""

import copy
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from agent.core.events import TextDelta
from agent.core.guide import Offer
from agent.core.messages import AssistantMessage, Message, ToolCall
from agent.core.model import ModelItem, Reply
from agent.core.stats import StepStats
from agent.llm.protocol import to_wire

Answer = str | Reply | Sequence[ModelItem] | Callable[[], AsyncIterator[ModelItem]]


class ScriptedModel:
    """Gives one answer of the script per request, the last one again and again.

    Text stands for a streamed text reply; a callable makes a stream of its own, which may wait for
    something. `requests` holds what each request would look like on the wire, `offers` what was offered.
    """

    def __init__(self, *script: Answer, context_tokens: int = 0) -> None:
        self._script = list(script)
        self.context_tokens = context_tokens
        self.requests: list[list[dict[str, Any]]] = []
        self.offers: list[Offer] = []
        self.streams_closed = 0

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, offer: Offer
    ) -> AsyncIterator[ModelItem]:
        self.requests.append(copy.deepcopy(to_wire(messages)))
        self.offers.append(offer)
        answer = self._script[min(len(self.requests), len(self._script)) - 1]
        try:
            if callable(answer):
                async for item in answer():
                    yield item
                return
            for item in _items(answer):
                yield item
        finally:
            self.streams_closed += 1


def _items(answer: str | Reply | Sequence[ModelItem]) -> Sequence[ModelItem]:
    if isinstance(answer, str):
        return [TextDelta(text=answer), say(answer)]
    return [answer] if isinstance(answer, Reply) else answer


def figures(prompt: int = 10, decoded: int = 5, cached: int = 0) -> StepStats:
    return StepStats(
        prompt_tokens=prompt,
        cached_tokens=cached,
        decoded_tokens=decoded,
        prompt_seconds=0.5,
        decode_seconds=0.25,
    )


def say(text: str, stats: StepStats | None = None) -> Reply:
    """A plain text reply."""
    return Reply(message=AssistantMessage(text), stop_reason="stop", stats=stats or figures())


def call(name: str, call_id: str = "c1", *, in_text: bool = False, **arguments: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments, raw_arguments=f"{arguments}", in_text=in_text)


def act(*calls: ToolCall, text: str = "", stats: StepStats | None = None) -> Reply:
    """A reply that calls tools."""
    return Reply(
        message=AssistantMessage(text, tool_calls=calls), stop_reason="tool_calls", stats=stats or figures()
    )


def bad(problem: str, text: str = "nonsense") -> Reply:
    """A reply that cannot be acted on."""
    return Reply(message=AssistantMessage(text), stop_reason="stop", stats=figures(), problem=problem)


def broken(reason: Any, error: str = "") -> Reply:
    """The end of a stream that gave no reply."""
    return Reply(message=AssistantMessage("half a"), stop_reason=reason, stats=figures(), error=error)
