"""What a turn works on and with."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.core.events import TurnReason
from agent.core.executor import ToolExecutor
from agent.core.guide import Guide
from agent.core.inbox import Inbox
from agent.core.limits import Guard
from agent.core.messages import AssistantMessage, Message
from agent.core.model import Model
from agent.core.verifier import Verifier


@dataclass(slots=True, kw_only=True)
class Conversation:
    """The messages of a session. Only ever appended to, so that the server's prompt cache holds.

    `requested` is how many of them the last request held.
    """

    messages: list[Message] = field(default_factory=list)
    requested: int = 0

    def add(self, message: Message) -> None:
        self.messages.append(message)

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
    is put before each request.
    """

    model: Model
    executor: ToolExecutor
    guards: Sequence[Guard]
    verifier: Verifier | None = None
    guide: Guide | None = None
    inbox: Inbox | None = None
    reply_tokens: int = 2048
    cancel: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a turn ends; `detail` is one line for people."""

    reason: TurnReason
    answer: str
    detail: str
