"""Questions of MCP servers in line mode: a field a line, an empty line takes what is proposed."""

from collections.abc import Awaitable, Callable
from typing import Any

from agent.core.events import QuestionAsked
from agent.core.questions import QuestionField, parsed
from agent.ui.conversation.text import visible
from agent.ui.text import one_line


class PlainForms:
    """Asks the oldest open question. `say` prints a line, `service` reaches the session."""

    def __init__(self, say: Callable[[str], None], service: Callable[..., Awaitable[Any]]) -> None:
        self._say = say
        self._service = service
        self._waiting: list[QuestionAsked] = []
        self._values: dict[str, Any] = {}
        self._agreed = False
        self._at = 0

    @property
    def is_open(self) -> bool:
        return bool(self._waiting)

    def add(self, question: QuestionAsked) -> None:
        self._waiting.append(question)
        if len(self._waiting) == 1:
            self._begin()

    def settle(self, question_id: str) -> None:
        """The question is no longer open, whoever answered it."""
        was_first = self._waiting[:1]
        self._waiting = [one for one in self._waiting if one.question_id != question_id]
        if self._waiting and self._waiting[:1] != was_first:
            self._begin()

    async def take(self, line: str) -> None:
        """Acts on a line that was typed while a question is open."""
        question = self._waiting[0]
        if not self._agreed:
            if line.strip().lower() not in ("y", "yes", "1"):
                await self._reply(question, "decline")
                return
            self._agreed = True
        else:
            field = question.fields[self._at]
            try:
                value = parsed(line, field)
            except ValueError as error:
                self._say(f"{one_line(str(error), 200)}, please:")
                return
            if value is None and field.default is None and field.required:
                self._say("that is needed:")
                return
            if value is not None:
                self._values[field.name] = value
            self._at += 1
        if self._at < len(question.fields):
            self._say(_asked(question.fields[self._at]))
        else:
            await self._reply(question, "accept")

    async def give_up(self) -> None:
        """The input has ended, so nobody will answer."""
        for question in list(self._waiting):
            await self._reply(question, "cancel")

    def _begin(self) -> None:
        question = self._waiting[0]
        self._values, self._agreed, self._at = {}, False, 0
        self._say(f"? The MCP server {one_line(question.source, 40)} asks: {visible(question.text)}")
        if question.url:
            self._say(f"It wants you to open {visible(question.url)}\nyes when you have done so, or no")
        else:
            self._say(f"yes to answer {len(question.fields)} fields, or no")

    async def _reply(self, question: QuestionAsked, action: str) -> None:
        await self._service(
            "reply", question_id=question.question_id, action=action, values=dict(self._values)
        )


def _asked(field: QuestionField) -> str:
    listed = f" ({', '.join(value for value, _ in field.options)})" if field.options else ""
    proposed = "" if field.default is None else f" [{one_line(str(field.default), 80)}]"
    return f"{one_line(field.title, 80)}{listed}{proposed}:"
