"""What a turn works on and with."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.core import trimming
from agent.core.events import TurnReason
from agent.core.executor import ToolExecutor
from agent.core.guide import Guide
from agent.core.inbox import Inbox
from agent.core.limits import Guard
from agent.core.messages import AssistantMessage, Message, SystemMessage, UserMessage
from agent.core.model import Model
from agent.core.stats import StepStats
from agent.core.verifier import Verifier

if TYPE_CHECKING:
    from agent.core.compaction import Compactor

CountRequest = Callable[[Sequence[Message]], Awaitable[int]]
"""Tokens of a request with these messages and all tools, estimated where the server does not count them."""

_LEAST_TELLING_CHARACTERS = 400
_RATIOS = (0.5, 3.6)


@dataclass(slots=True, kw_only=True)
class Conversation:
    """The messages of a session. Only ever appended to, so that the server's prompt cache holds.

    `requested` is how many of them the last request held. `tokens` are those of the first `measured` messages
    with the tools, as the server has counted them (0 = not known), `opening_tokens` those of the first
    `opening` ones, which stand before the first reply. `characters_per_token` is as it was seen last.
    """

    messages: list[Message] = field(default_factory=list)
    requested: int = 0
    tokens: int = 0
    measured: int = 0
    opening: int = 0
    opening_tokens: int = 0
    characters_per_token: float = 3.0

    def add(self, message: Message) -> None:
        self.messages.append(message)

    def measure(self, stats: StepStats, *, with_reply: bool) -> None:
        """Notes what the server counted for the last request; `with_reply` if its reply was added."""
        prompt = stats.cached_tokens + stats.prompt_tokens
        if not stats.counted or prompt <= 0:
            return
        asked = self.messages[: self.requested]
        if not trimming.could_have(asked, prompt):
            return
        if not self.opening and not any(isinstance(one, AssistantMessage) for one in asked):
            self.opening, self.opening_tokens = self.requested, prompt
        tokens, measured = (
            (stats.context_tokens, len(self.messages)) if with_reply else (prompt, self.requested)
        )
        new = self.messages[self.measured : measured]
        size = sum(len(trimming.text_of(one, thoughts=True)) for one in new)
        is_text = not any(isinstance(one, UserMessage) and one.pictures for one in new)
        if is_text and self.tokens and size >= _LEAST_TELLING_CHARACTERS and tokens > self.tokens:
            low, high = _RATIOS
            self.characters_per_token = min(high, max(low, size / (tokens - self.tokens)))
        self.tokens, self.measured = tokens, measured

    def begin_again(self, messages: Sequence[Message], cause: str) -> None:
        """Replaces the whole conversation."""
        opening = list(messages[: self.opening])
        if opening != self.messages[: self.opening]:
            self.opening = self.opening_tokens = 0
        self.messages = list(messages)
        self.requested = self.tokens = self.measured = 0

    def shorten(self, messages: Sequence[Message], kept_from: int, cause: str) -> None:
        """Replaces it by a shorter one. What was at `kept_from` and after it stands at the new end."""
        self.begin_again(messages, cause)

    def amend(self, messages: Sequence[Message]) -> None:
        """Puts other texts in the place of the last messages, which were in no request yet."""
        self.messages[len(self.messages) - len(messages) :] = messages

    @property
    def lacks_reply(self) -> bool:
        """Whether the last request was not answered by what follows it, so the next one cannot extend it."""
        if not 0 < self.requested <= len(self.messages):
            return False
        return not isinstance(next(iter(self.messages[self.requested :]), None), AssistantMessage)


class FixedPart:
    """What a prompt begins with whatever is said, the system text and the tools: how many tokens those are.

    The first reply of a conversation tells; one that goes on has had that in an earlier life.
    """

    def __init__(self, count_request: CountRequest | None) -> None:
        self._count_request = count_request
        self._counted = 0

    async def learn(self, conversation: Conversation) -> None:
        """Has it counted, once, where no first reply has told it."""
        if self._count_request and not conversation.opening_tokens and not self._counted:
            self._counted = await self._count_request([*_system(conversation), UserMessage("")])

    def tokens(self, conversation: Conversation) -> int:
        """Tokens of the system text and the tools, as far as they are known."""
        least = trimming.tokens_of(_system(conversation), conversation.characters_per_token)
        if not conversation.opening_tokens:
            return max(self._counted, least)
        opening = conversation.messages[: conversation.opening]
        texts = [one for one in opening if not isinstance(one, SystemMessage)]
        said = trimming.tokens_of(texts, conversation.characters_per_token)
        return max(conversation.opening_tokens - said, least)

    def tools(self, conversation: Conversation) -> int:
        """Tokens of what is in no message, as far as they are known."""
        system = trimming.tokens_of(_system(conversation), conversation.characters_per_token)
        return max(0, self.tokens(conversation) - system)


def _system(conversation: Conversation) -> list[Message]:
    return [one for one in conversation.messages[:1] if isinstance(one, SystemMessage)]


@dataclass(slots=True, kw_only=True)
class TurnServices:
    """What a turn works with. `cancel` may be set at any time from the same event loop.

    A `TimeLimit` among the guards also stops whatever is running when its time is up. `guide` narrows
    what each reply may be; without one everything is allowed. `inbox` has what a person says meanwhile; it
    is put before each request. `compactor` makes a conversation short that is about to fill its window.
    """

    model: Model
    executor: ToolExecutor
    guards: Sequence[Guard]
    verifier: Verifier | None = None
    guide: Guide | None = None
    inbox: Inbox | None = None
    compactor: "Compactor | None" = None
    reply_tokens: int = 2048
    cancel: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a turn ends; `detail` is one line for people."""

    reason: TurnReason
    answer: str
    detail: str
