"""The messages of a request for a summary: the conversation as the server has it, or less if it must fit."""

from collections.abc import Sequence

from agent.core import summing, trimming
from agent.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from agent.core.turn import Conversation

_KEPT_BACK = "(This result comes after your summary.)"
_LEAST_RATIO = 3.0


def asking_within(conversation: Conversation, request: str, *, fixed: int, room: int) -> list[Message] | None:
    """The conversation with the request at its end: as it is cached if that fits, else less of it.

    Args:
        fixed: tokens of the system text and the tools.
        room: tokens for all of it; None comes back where nothing fits, or there is nothing to sum up.
    """
    messages = conversation.messages
    hot = max(summing.answered(messages), min(conversation.requested, len(messages)))
    asked = messages[:hot]
    if not asked:
        return None  # the first message itself was too long, so the model never had one
    ratio = conversation.characters_per_token
    known = conversation.tokens if conversation.measured <= hot else 0
    size = (known or fixed) + trimming.tokens_of(asked[conversation.measured if known else 1 :], ratio)
    end = request_behind(asked, request, no_result=_KEPT_BACK)
    room -= trimming.tokens_of(end, ratio)
    if size <= room:
        return [*asked, *end]
    bare = trimming.without_thoughts(asked)
    for until in (trimming.last_turn(asked), hot):
        bare = trimming.without_results(bare, until)
        if fixed + trimming.tokens_of(bare[1:], min(ratio, _LEAST_RATIO)) <= room:
            return [*bare, *end]
    return None


def request_behind(messages: Sequence[Message], request: str, *, no_result: str) -> list[Message]:
    """What stands behind `messages` to ask for something: a result for each last call, as templates want."""
    last = messages[-1]
    calls = last.tool_calls if isinstance(last, AssistantMessage) else ()
    return [*(ToolMessage(call.id, call.name, no_result) for call in calls), UserMessage(request)]
