"""A session handle that a test plays: it yields the events it is given and notes what it is asked."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from agent.core.errors import UsageError
from agent.core.events import Event, ModeChanged, QueueChanged, UserMessageAdded
from agent.core.handle import Answer, SessionFacts, SessionMode

FACTS = SessionFacts(
    session_id="20260101-fake",
    workspace="/home/me/project",
    profile="small",
    mode="ask",
    model="qwen-coder-1.5b.gguf",
    context_tokens=8192,
    used_tokens=1024,
    branch="main",
    changed_files=3,
    server="ready",
)


class FakeHandle:
    """`services` maps a name to the answer of that service, or to an exception that it raises."""

    def __init__(self, facts: SessionFacts = FACTS, services: Mapping[str, Any] | None = None) -> None:
        self._facts = facts
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self.services = dict(services or {})
        self.prompts: list[str] = []
        self.steered: list[str] = []
        self.later: list[str] = []
        self.answers: list[tuple[str, Answer]] = []
        self.commands: list[tuple[str, dict[str, Any]]] = []
        self.cancelled = 0
        self.is_closed = False

    @property
    def facts(self) -> SessionFacts:
        return self._facts

    def know(self, **changes: Any) -> None:
        self._facts = replace(self._facts, **changes)

    def emit(self, *events: Event) -> None:
        for event in events:
            self._events.put_nowait(event)

    async def events(self) -> AsyncIterator[Event]:
        while (event := await self._events.get()) is not None:
            yield event

    def prompt(self, text: str) -> None:
        self.prompts.append(text)
        self.know(is_running=True)
        self.emit(UserMessageAdded(text=text))

    def steer(self, text: str) -> None:
        self.steered.append(text)
        self._tell_queue()

    def follow_up(self, text: str) -> None:
        self.later.append(text)
        self._tell_queue()

    def take_back_queued(self) -> list[str]:
        queued = [*self.steered, *self.later]
        self.steered, self.later = [], []
        self._tell_queue()
        return queued

    def cancel(self) -> None:
        self.cancelled += 1
        self.know(is_running=False)

    def answer(self, request_id: str, answer: Answer) -> None:
        self.answers.append((request_id, answer))

    def set_mode(self, mode: SessionMode) -> None:
        self.know(mode=mode)
        self.emit(ModeChanged(mode=mode))

    async def command(self, name: str, arguments: Mapping[str, Any]) -> Any:
        self.commands.append((name, dict(arguments)))
        if name not in self.services:
            raise UsageError(f"this session has no service '{name}'")
        answer = self.services[name]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        self.is_closed = True
        self._events.put_nowait(None)

    def _tell_queue(self) -> None:
        self.emit(QueueChanged(steering=tuple(self.steered), follow_ups=tuple(self.later)))
