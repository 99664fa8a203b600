"""A coding assistant for people who run their own model.

As a library: `from agent import Agent`, see docs/library.md. The names of it are loaded when they are first
asked for, so that commands which need none of them start as quickly as before.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from agent.app.library import Agent, Approve, TurnResult
    from agent.core.errors import AgentError
    from agent.core.events import (
        ApprovalRequest,
        Event,
        Notice,
        ReasoningDelta,
        TextDelta,
        ToolFinished,
        ToolOutput,
        ToolStarted,
        TurnFinished,
    )
    from agent.core.handle import Answer

__all__ = (
    "Agent",
    "AgentError",
    "Answer",
    "ApprovalRequest",
    "Approve",
    "Event",
    "Notice",
    "ReasoningDelta",
    "TextDelta",
    "ToolFinished",
    "ToolOutput",
    "ToolStarted",
    "TurnFinished",
    "TurnResult",
)

_PLACES = {
    "Agent": "agent.app.library",
    "AgentError": "agent.core.errors",
    "Answer": "agent.core.handle",
    "Approve": "agent.app.library",
    "TurnResult": "agent.app.library",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'agent' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES.get(name, "agent.core.events")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
