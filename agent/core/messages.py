"""What a conversation is made of, independent of any wire format.

`AssistantMessage.text` is kept exactly as the model produced it, because the next request has to
repeat it byte for byte for the server's prompt cache to hold. Turning these into what a server
expects happens in one place per tool protocol, see `agent.llm.protocol`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

INTERRUPTED = "(interrupted)"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model asked for. `raw_arguments` is the text as it was generated.

    `in_text` says that the call is part of the message's text (constrained output, or a call that was
    recovered from prose) instead of the server's own tool-call fields. It has to go back the same way.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    raw_arguments: str
    in_text: bool = False


@dataclass(frozen=True, slots=True)
class SystemMessage:
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that goes with a text: the file that keeps its bytes, by which it is sent each time.

    `name` is what the person called it, `media_type` such as `image/png`.
    """

    file: str
    name: str
    media_type: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    text: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """`text` is what the tool returned, others' words among it; `note` what this program says with it."""

    call_id: str
    tool_name: str
    text: str
    is_error: bool = False
    note: str = ""


def broken_off(message: AssistantMessage) -> AssistantMessage:
    """A reply that was interrupted, as it can stay in a conversation: without calls, and never empty.

    The server's slot holds what was generated so far, and templates want the two sides to take turns.
    """
    return AssistantMessage(message.text if message.text.strip() else INTERRUPTED, message.reasoning)


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage
