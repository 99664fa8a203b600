"""Puts a chat reply together from its chunks, and notes when they came."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.core.errors import ServerError


@dataclass(slots=True)
class ReplyReader:
    """What has arrived of one reply. Times are seconds since the request was sent."""

    clock: Callable[[], float]
    text: str = ""
    reasoning: str = ""
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    finish_reason: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, Any] = field(default_factory=dict)
    pieces: int = 0
    first_piece: float | None = None
    last_piece: float | None = None
    raw: list[Any] = field(default_factory=list)
    is_complete: bool = False

    def take_line(self, line: str) -> None:
        """One line of a stream of events.

        Raises:
            ServerError: the server reports an error in the middle of its reply.
            ValueError: the line is no JSON.
        """
        if not line.startswith("data:"):
            return
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            self.is_complete = True
        elif data:
            now = self.clock()
            chunk = json.loads(data)
            self.raw.append([round(now, 6), chunk])
            self._take(chunk, now)

    def take_whole(self, reply: Any) -> None:
        """A reply that came in one piece."""
        self.raw.append([round(self.clock(), 6), reply])
        self._take(reply, None)
        self.is_complete = True

    @property
    def output(self) -> str:
        """What the model wrote, in the form in which two replies are compared: thoughts, text, calls."""
        thought = f"<think>{self.reasoning}</think>\n" if self.reasoning else ""
        calls = [f"\n{call['name']}({call['arguments']})" for _, call in sorted(self.calls.items())]
        return thought + self.text + "".join(calls)

    def _take(self, chunk: Any, now: float | None) -> None:
        if not isinstance(chunk, dict):
            raise ValueError("not a JSON object")
        if error := chunk.get("error"):
            raise ServerError(f"the server broke off its reply: {error_text(error)}")
        for name in ("usage", "timings"):
            if isinstance(chunk.get(name), dict):
                setattr(self, name, chunk[name])
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        if choice.get("finish_reason"):
            self.finish_reason = str(choice["finish_reason"])
            self.is_complete = True
        delta = choice.get("delta", choice.get("message"))
        if isinstance(delta, dict) and self._add(delta) and now is not None:
            self.pieces += 1
            self.last_piece = now
            self.first_piece = now if self.first_piece is None else self.first_piece

    def _add(self, delta: Mapping[str, Any]) -> bool:
        """Whether there was anything in it that the model wrote."""
        content = delta.get("content")
        # vLLM has called it `reasoning` since 2026, llama-server and SGLang call it `reasoning_content`.
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        self.text += content if isinstance(content, str) else ""
        self.reasoning += thought if isinstance(thought, str) else ""
        calls = delta.get("tool_calls") or ()
        for place, item in enumerate(calls):
            call = self.calls.setdefault(item.get("index", place), {"name": "", "arguments": ""})
            function = item.get("function") or {}
            call["name"] += function.get("name") or ""
            call["arguments"] += function.get("arguments") or ""
        return bool(content or thought or calls)


def error_text(error: Any) -> str:
    """One line of whatever a server puts under `error`."""
    message = error.get("message", error) if isinstance(error, dict) else error
    return " ".join(str(message).split())[:300]
