"""Questions of MCP servers at the screen: one after the other, each until it is answered or taken back."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from agent.core.events import Event, QuestionAsked, QuestionSettled
from agent.core.questions import Reply

if TYPE_CHECKING:
    from agent.ui.app import AgentApp
    from agent.ui.screens.question import QuestionScreen


class Questions:
    """`service` reaches the session; `call_attention` is for a person who looks elsewhere."""

    def __init__(
        self,
        app: "AgentApp",
        service: Callable[..., Awaitable[Any]],
        call_attention: Callable[[str], None],
    ) -> None:
        self._app = app
        self._service = service
        self._call_attention = call_attention
        self._shown: dict[str, QuestionScreen] = {}

    def takes_back(self, event: Event) -> bool:
        """Closes the form of a question that is no longer open. Whether the event was about one."""
        if not isinstance(event, QuestionSettled):
            return False
        screen = self._shown.pop(event.question_id, None)
        if screen is not None and screen.is_current:
            screen.dismiss(Reply("cancel"))
        return True

    async def ask(self, question: QuestionAsked) -> None:
        """Shows the form and sends the session what the person replied."""
        from agent.ui.screens.question import QuestionScreen

        self._call_attention(f"the MCP server {question.source} asks")
        screen = QuestionScreen(question)
        self._shown[question.question_id] = screen
        reply = await self._app.push_screen_wait(screen)
        if self._shown.pop(question.question_id, None) is None or reply is None:
            return
        await self._service(
            "reply", question_id=question.question_id, action=reply.action, values=dict(reply.values)
        )
