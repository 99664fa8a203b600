"""A model with a context window and a prompt cache, for tests of what a long session does to both."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agent.core.guide import Offer
from agent.core.messages import AssistantMessage, Message, ToolCall
from agent.core.model import ModelItem, Reply
from agent.core.stats import StepStats
from agent.llm.protocol import to_wire
from tests.fakes.chat import common_prefix, render_prompt, render_reply, tokenize
from tests.fakes.script import Call

Said = AssistantMessage | str
TOOLS_TOKENS = 300


@dataclass(frozen=True, slots=True)
class Request:
    """One request, in tokens: `slot` is what was in the cache before, `most` bounds the reply."""

    messages: list[dict[str, Any]]
    prompt: int
    cached: int
    slot: int
    most: int
    is_summary: bool

    @property
    def evaluated(self) -> int:
        return self.prompt - self.cached


class WindowedModel:
    """Answers what `answer` says to the number of the step (from 0), and requests for a summary with `notes`.

    `window` is what it promises, `real_window` what it has. A prompt that does not fit is refused, a reply
    that does not is cut. Without `tells_usage` it counts nothing, as servers do that send no usage.
    """

    def __init__(
        self,
        answer: Callable[[int], Said],
        window: int,
        *,
        notes: Said = "Decided: to go on. Open: the rest.",
        real_window: int = 0,
        tells_usage: bool = True,
    ) -> None:
        self.context_tokens = window
        self.requests: list[Request] = []
        self.refused = 0
        self._answer = answer
        self._notes = notes
        self._real = real_window or window
        self._tells_usage = tells_usage
        self._steps = 0
        self._slot: list[str] = []

    @property
    def summaries(self) -> list[Request]:
        return [one for one in self.requests if one.is_summary]

    async def count(self, text: str) -> int | None:
        return len(tokenize(text))

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, offer: Offer
    ) -> AsyncIterator[ModelItem]:
        wire = to_wire(messages)
        prompt = ["tool"] * TOOLS_TOKENS + tokenize(render_prompt({"messages": wire}))
        if len(prompt) + 1 > self._real:
            self.refused += 1
            yield Reply(
                message=AssistantMessage(""), stop_reason="overflow", error="too long", window=self._real
            )
            return
        is_summary = offer.tools == frozenset({"finish"})
        cached = common_prefix(self._slot, prompt)
        self.requests.append(Request(wire, len(prompt), cached, len(self._slot), max_tokens, is_summary))
        said = self._notes if is_summary else self._answer(self._steps)
        self._steps += not is_summary
        yield self._reply(said, prompt, cached, max_tokens)

    def _reply(self, said: Said, prompt: list[str], cached: int, max_tokens: int) -> Reply:
        message = AssistantMessage(said) if isinstance(said, str) else said
        calls = [Call(call.name, call.raw_arguments) for call in message.tool_calls]
        pieces = tokenize(render_reply(message.text, message.reasoning, calls))
        most = min(max_tokens, self._real - len(prompt))
        cut = len(pieces) > most
        pieces = pieces[:most]
        self._slot = prompt + pieces
        stats = StepStats(
            prompt_tokens=len(prompt) - cached, cached_tokens=cached, decoded_tokens=len(pieces)
        )
        if not self._tells_usage:
            stats = StepStats(counted=False)
        if cut:
            text = "".join(tokenize(message.text)[:most])
            return Reply(
                message=AssistantMessage(text), stop_reason="length", stats=stats, problem="too long, cut off"
            )
        reason = "tool_calls" if message.tool_calls else "stop"
        return Reply(message=message, stop_reason=reason, stats=stats)


def calling(
    number: int, *names: str, text: str = "", reasoning: str = "", **arguments: Any
) -> AssistantMessage:
    """A reply that calls tools; the arguments are those of all of them."""
    calls = tuple(
        ToolCall(f"c{number}-{place}", name, arguments, raw_arguments=str(arguments))
        for place, name in enumerate(names)
    )
    return AssistantMessage(text, reasoning, calls)
