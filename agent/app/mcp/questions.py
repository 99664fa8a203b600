"""Questions of MCP servers to the person: open until a front replies, declined where none can show them."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.core.errors import UsageError
from agent.core.events import Event, Notice, QuestionAsked, QuestionSettled
from agent.core.outside_text import one_line
from agent.core.questions import Question, Reply, ReplyAction

_ACTIONS: tuple[ReplyAction, ...] = ("accept", "decline", "cancel")


@dataclass(slots=True, kw_only=True)
class Questions:
    """`emit` shows events. `taken` says that a front shows questions; `take` turns it on."""

    emit: Callable[[Event], None]
    taken: bool = False
    _open: dict[str, "asyncio.Future[Reply]"] = field(default_factory=dict)
    _asked: int = 0

    async def ask(self, question: Question) -> Reply:
        """Waits for the person. Cancelled, it takes the question back."""
        if not self.taken:
            text = f"the MCP server {question.source} asks: {one_line(question.text, 300)}"
            self.emit(Notice(text=f"{text} (declined, because nobody can be asked here)", level="warning"))
            return Reply("decline")
        self._asked += 1
        identity = f"question-{self._asked}"
        waiting: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._open[identity] = waiting
        self.emit(
            QuestionAsked(
                question_id=identity,
                source=question.source,
                text=question.text,
                fields=question.fields,
                url=question.url,
            )
        )
        try:
            reply = await waiting
        except asyncio.CancelledError:
            self.emit(QuestionSettled(question_id=identity, outcome="withdrawn"))
            raise
        finally:
            del self._open[identity]
        self.emit(QuestionSettled(question_id=identity, outcome=reply.action))
        return reply

    async def take(self, _: Mapping[str, Any]) -> None:
        """A front says that it shows questions."""
        self.taken = True

    async def reply(self, arguments: Mapping[str, Any]) -> bool:
        """A front's reply; False for a question that is no longer open.

        Raises:
            UsageError: there is no such action, or the values are none.
        """
        action, values = arguments.get("action"), arguments.get("values") or {}
        if action not in _ACTIONS or not isinstance(values, Mapping):
            raise UsageError("a reply has an action (accept, decline or cancel) and values by name")
        waiting = self._open.get(str(arguments.get("question_id", "")))
        if waiting is None or waiting.done():
            return False
        waiting.set_result(Reply(action, dict(values)))
        return True
