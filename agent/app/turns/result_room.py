"""How a conversation is kept within its context window, and how much of a tool's result it has room for."""

from importlib.resources import files

from agent.config.model import Settings
from agent.core.compaction import Compactor
from agent.core.limits import ContextBudget, Guard
from agent.core.worklog import WorkLog
from agent.llm.client import ChatModel

# A tool result may take this share of the room that is left in the context window.
_RESULT_SHARE = 0.4
_CHARACTERS_PER_TOKEN = 3
_MOST_RESULT_CHARACTERS = 16_000


def compactor_for(
    model: ChatModel, settings: Settings, reply_tokens: int, log: WorkLog | None = None
) -> Compactor | None:
    """What makes a conversation of this model short; None where the settings want none.

    `log` has what is known from before the turn.
    """
    share = settings.limits.compact_at
    return compactor_at(share, model, reply_tokens, log) if share else None


def compactor_at(share: float, model: ChatModel, reply_tokens: int, log: WorkLog | None = None) -> Compactor:
    """The same, at work from that share of the window on."""
    return Compactor(
        model,
        share=share,
        word_request=_request,
        reply_tokens=reply_tokens,
        log=log or WorkLog(),
        count=model.count_tokens,
        count_request=model.count_request,
    )


def room_guards(model: ChatModel, reply_tokens: int, compactor: Compactor | None) -> list[Guard]:
    """Where nothing makes a conversation short, a turn ends before it exceeds the window."""
    return [] if compactor else [ContextBudget(lambda: model.context_tokens, reply_tokens)]


def result_limit(model: ChatModel, reply_tokens: int, compactor: Compactor | None) -> int:
    """The most characters of a tool's result that still leave room in the context window for a reply."""
    if compactor is not None:
        return compactor.result_limit()
    window = model.context_tokens
    if window <= 0:
        return _MOST_RESULT_CHARACTERS
    free = max(0, window - model.used_tokens - reply_tokens)
    return min(_MOST_RESULT_CHARACTERS, int(free * _CHARACTERS_PER_TOKEN * _RESULT_SHARE))


def _request(words: int, instruction: str) -> str:
    wanted = files("agent").joinpath("prompts/compact.md").read_text("utf-8").strip()
    request = wanted.format(words=words)
    return f"{request}\nAbove all keep: {instruction.strip()}" if instruction.strip() else request
