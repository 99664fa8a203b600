"""A conversation of many requests with a real model, and how much of its prompts was evaluated twice."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from agent.app.turns.conversation import system_prompt
from agent.core.guide import Offer
from agent.core.messages import Message, SystemMessage, ToolMessage, UserMessage
from agent.core.model import Reply
from agent.core.stats import StepStats
from agent.llm.client import ChatModel, Connection
from agent.llm.protocol import ToolProtocol

TASK = "Read page-1.txt, page-2.txt and so on, one after the other, and keep count of the words with an x."
PAGE = "Page {number}: the quick brown fox jumps over the lazy dog, and sixty-{number} others watch it.\n"
REPLY_TOKENS = 96


@dataclass(frozen=True, slots=True)
class Step:
    """One request. A reply that cannot be acted on is not `kept` in the conversation."""

    stats: StepStats
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """Tokens of a whole conversation, from the server's own figures.

    `prompt` counts every prompt in full, `evaluated` what was not in the cache, and `again` what was
    evaluated although the request before, or the reply to it, had held it.
    """

    requests: int
    prompt: int
    evaluated: int
    again: int

    @property
    def share_again(self) -> float:
        """Share of all prompt tokens."""
        return self.again / self.prompt

    @property
    def share_of_evaluated(self) -> float:
        """Share of the tokens that were evaluated."""
        return self.again / self.evaluated


def reuse_in(steps: Sequence[Step]) -> Reuse:
    """Adds up the steps of one conversation, in order.

    The cache could give back the prompt before and the reply to it, if that was kept, without its last token:
    nothing was evaluated after that one.
    """
    prompts = [step.stats.cached_tokens + step.stats.prompt_tokens for step in steps]
    held = [
        prompt + (max(0, step.stats.decoded_tokens - 1) if step.kept else 0)
        for prompt, step in zip(prompts, steps, strict=True)
    ]
    later = [step.stats.cached_tokens for step in steps[1:]]
    return Reuse(
        requests=len(steps),
        prompt=sum(prompts),
        evaluated=sum(step.stats.prompt_tokens for step in steps),
        again=sum(max(0, one - cached) for one, cached in zip(held, later, strict=False)),
    )


async def converse(base_url: str, api_key: str, protocol: ToolProtocol, requests: int) -> list[Step]:
    """Has the model read one page after the other; returns what each request cost.

    The model writes its replies itself. Where calls are constrained it can only ask for the next page.
    Raises RuntimeError when the server fails.
    """
    model = ChatModel(
        Connection(base_url=base_url, api_key=api_key),
        protocol,
        context_tokens=0,
        sampling={"temperature": 0.0},
        cancel=asyncio.Event(),
    )
    messages: list[Message] = [SystemMessage(protocol.system_text(system_prompt())), UserMessage(TASK)]
    steps: list[Step] = []
    try:
        for number in range(1, requests + 1):
            reply = await _reply(model, messages, f"page-{number}.txt")
            steps.append(Step(reply.stats, kept=not reply.problem))
            messages.extend(_what_follows(reply, number))
    finally:
        await model.close()
    return steps


async def _reply(model: ChatModel, messages: Sequence[Message], page: str) -> Reply:
    offer = Offer(tools=frozenset({"read"}), paths={"read": (page,)})
    last = None
    async for item in model.generate(messages, max_tokens=REPLY_TOKENS, offer=offer):
        last = item
    if not isinstance(last, Reply) or last.error:
        raise RuntimeError(last.error if isinstance(last, Reply) else "the stream had no end")
    return last


def _what_follows(reply: Reply, number: int) -> list[Message]:
    """The reply and the answer to it; as in a run, a reply that cannot be acted on is left out."""
    if reply.problem:
        return [UserMessage(reply.problem)]
    text = PAGE.format(number=number) * 4
    results = [ToolMessage(call.id, call.name, text) for call in reply.message.tool_calls]
    return [reply.message, *(results or [UserMessage(f"page-{number}.txt is:\n{text}Go on.")])]
