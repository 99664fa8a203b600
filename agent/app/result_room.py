"""How much of a tool's result a conversation has room for."""

from agent.llm.client import ChatModel

# A tool result may take this share of the room that is left in the context window.
_RESULT_SHARE = 0.4
_CHARACTERS_PER_TOKEN = 3
_MOST_RESULT_CHARACTERS = 16_000


def result_limit(model: ChatModel, reply_tokens: int) -> int:
    """The most characters of a tool's result that still leave room in the context window for a reply."""
    window = model.context_tokens
    if window <= 0:
        return _MOST_RESULT_CHARACTERS
    free = max(0, window - model.used_tokens - reply_tokens)
    return min(_MOST_RESULT_CHARACTERS, int(free * _CHARACTERS_PER_TOKEN * _RESULT_SHARE))
