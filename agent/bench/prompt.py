"""A prompt of a benchmark: one request, the same for every server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPrompt:
    """One request of a suite.

    `messages` and `tools` are sent as they are, `request` is what else belongs to it (tool_choice ...).
    `max_tokens` and `temperature` are the suite's own and give way to `MeasureOptions`; None leaves them to
    its defaults. `category` groups rows of a report.
    """

    id: str
    category: str
    messages: tuple[Mapping[str, Any], ...]
    title: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    request: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    temperature: float | None = None

    @classmethod
    def of_text(cls, text: str, identity: str = "prompt", category: str = "own") -> "BenchPrompt":
        """A single message of the user."""
        return cls(id=identity, category=category, messages=({"role": "user", "content": text},))
