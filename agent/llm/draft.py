"""A reply while it streams: what the chunks of a chat completion add up to.

The chunks are plain JSON, because building a typed object for each costs more than everything else that is
done with it. Nothing has checked them, so whatever has a strange shape raises ValueError here.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.core.events import Prefill, ReasoningDelta, TextDelta, ToolCallDelta
from agent.core.model import ModelItem
from agent.core.stats import StepStats
from agent.llm import stats
from agent.llm.halves import joined
from agent.llm.toolcalls import CallPieces

Delta = ReasoningDelta | TextDelta | ToolCallDelta


class ShowsText(Protocol):
    def delta(self, text: str) -> TextDelta | ToolCallDelta:
        """How a piece of the reply's content is shown while it streams."""
        ...


@dataclass(slots=True)
class Draft:
    """A reply while it streams. `pieces` counts the chunks that held some of it, `size` its characters."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, CallPieces] = field(default_factory=dict)
    finish: str = ""
    timings: Mapping[str, Any] | None = None
    usage: Any = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    pieces: int = 0
    first_size: int = 0
    size: int = 0

    @property
    def content(self) -> str:
        return joined(self.text)

    @property
    def thoughts(self) -> str:
        return joined(self.reasoning)

    @property
    def latest(self) -> str:
        """The part that is growing: thoughts come first, then text, then calls."""
        if self.calls:
            return "".join(self.calls[max(self.calls)].arguments)
        return "".join(self.text or self.reasoning)

    def take(self, chunk: Any, shown: ShowsText) -> list[ModelItem]:
        """Adds one chunk, and returns what it has to show. Raises ValueError when it is none."""
        if not isinstance(chunk, Mapping):
            raise ValueError(f"{type(chunk).__name__} where a chunk should be")
        timings, progress = chunk.get("timings"), chunk.get("prompt_progress")
        self.timings = timings if isinstance(timings, Mapping) else self.timings
        self.usage = chunk.get("usage") or self.usage
        items: list[ModelItem] = []
        if isinstance(progress, Mapping):
            total, cached, processed = (
                stats.count(progress, name) for name in ("total", "cache", "processed")
            )
            items.append(Prefill(total=total, cached=cached, processed=processed))
        for choice in _items(chunk.get("choices")):
            record = _record(choice)
            self.finish = _text(record.get("finish_reason")) or self.finish
            items.extend(self._take_delta(_record(record.get("delta")), shown))
        return items

    def _take_delta(self, delta: Mapping[str, Any], shown: ShowsText) -> list[Delta]:
        items: list[Delta] = []
        # vLLM and Ollama call the thoughts `reasoning`.
        reasoning = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        content = _text(delta.get("content"))
        calls = _items(delta.get("tool_calls"))
        if reasoning:
            self.reasoning.append(reasoning)
            items.append(ReasoningDelta(text=reasoning))
        if content:
            self.text.append(content)
            items.append(shown.delta(content))
        items.extend(self._take_call(_record(piece)) for piece in calls)
        if reasoning or content or calls:
            self._time(sum(len(item.text) for item in items))
        return items

    def _time(self, size: int) -> None:
        """Notes that a piece of so many characters has come."""
        self.last_token_at = time.monotonic()
        if self.first_token_at is None:
            self.first_token_at, self.first_size = self.last_token_at, size
        self.pieces += 1
        self.size += size

    def _take_call(self, piece: Mapping[str, Any]) -> ToolCallDelta:
        function = _record(piece.get("function"))
        name, arguments = _text(function.get("name")), _arguments(function.get("arguments"))
        call = self._call_of(piece.get("index"), starts=bool(name))
        call.id = _text(piece.get("id")) or call.id
        call.name = call.name or name
        call.arguments.append(arguments)
        return ToolCallDelta(text=arguments)

    def _call_of(self, index: Any, *, starts: bool) -> CallPieces:
        """The call that a streamed piece belongs to. Some servers number them, some do not."""
        if not isinstance(index, int):
            index = len(self.calls) if starts or not self.calls else max(self.calls)
        return self.calls.setdefault(index, CallPieces())

    def figures(self, started: float) -> StepStats:
        """What the reply cost; `started` is the monotonic time of the request."""
        if self.timings is not None:
            return stats.from_timings(self.timings, self.usage)
        first = self.first_token_at or started
        return stats.from_usage(
            self.usage,
            stats.Arrival(
                pieces=self.pieces,
                first_seconds=first - started,
                last_seconds=(self.last_token_at or first) - started,
                first_share=self.first_size / self.size if self.size else 1.0,
            ),
        )


def _text(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} where a text should be")
    return value or ""


def _arguments(value: Any) -> str:
    """Some servers send arguments as the object that they are (text-generation-inference)."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else _text(value)


def _record(value: Any) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{type(value).__name__} where an object should be")
    return value or {}


def _items(value: Any) -> Sequence[Any]:
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{type(value).__name__} where a list should be")
    return value or ()
