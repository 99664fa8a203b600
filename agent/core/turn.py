"""What a turn works on and with."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.core import trimming
from agent.core.events import TurnReason
from agent.core.executor import ToolExecutor
from agent.core.guide import Guide
from agent.core.inbox import Inbox
from agent.core.limits import Guard
from agent.core.messages import AssistantMessage, Message
from agent.core.model import Model
from agent.core.stats import StepStats
from agent.core.verifier import Verifier

if TYPE_CHECKING:
    from agent.core.compaction import Compactor

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
        if not self.opening and not any(isinstance(one, AssistantMessage) for one in asked):
            self.opening, self.opening_tokens = self.requested, prompt
        tokens, measured = (
            (stats.context_tokens, len(self.messages)) if with_reply else (prompt, self.requested)
        )
        new = self.messages[self.measured : measured]
        size = sum(len(trimming.text_of(one, thoughts=True)) for one in new)
        if self.tokens and size >= _LEAST_TELLING_CHARACTERS and tokens > self.tokens:
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
