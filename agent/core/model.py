"""The seam between the turn loop and whatever generates text."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agent.core.events import Notice, Prefill, ReasoningDelta, Retry, TextDelta, ToolCallDelta
from agent.core.guide import Offer
from agent.core.messages import AssistantMessage, Message
from agent.core.stats import StepStats

StopReason = Literal["stop", "tool_calls", "length", "repetition", "overflow", "error", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """How a generation ended. It is the last item of a stream, whatever happened.

    `problem` tells the model what was wrong with a reply that cannot be acted on: a call cut by the
    token limit, arguments that are no JSON, an unknown tool. Such a reply is never put into the
    history. `is_empty` says that it had nothing in it but thoughts, if that. `error` tells people why the
    server gave none. Of an overflow `window` is the size of the slot's context and `prompt_tokens` that of
    the prompt, each 0 where it was not told.
    """

    message: AssistantMessage
    stop_reason: StopReason
    stats: StepStats = field(default_factory=StepStats)
    problem: str = ""
    error: str = ""
    is_empty: bool = False
    window: int = 0
    prompt_tokens: int = 0


ModelItem = TextDelta | ReasoningDelta | ToolCallDelta | Prefill | Retry | Notice | Reply


class Model(Protocol):
    """Generates one reply to a conversation. Failures are a `Reply`, never an exception."""

    @property
    def context_tokens(self) -> int:
        """Size of the context window of the slot, in tokens, as the server says; 0 if unknown."""
        ...

    def generate(
        self, messages: Sequence[Message], *, max_tokens: int, offer: Offer
    ) -> AsyncIterator[ModelItem]:
        """Streams one reply of at most `max_tokens`, bound to `offer` where the protocol can do that."""
        ...
