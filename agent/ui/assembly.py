"""Builds what comes after the first paint. Importing this module loads the slow parts, in a thread."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual.widget import Widget

from agent.core.errors import AgentError
from agent.ui import actions, host, status
from agent.ui.bridge import Bridge, Conversation
from agent.ui.completer import Completer
from agent.ui.entry.completion import Completable, completable
from agent.ui.live import LiveSession
from agent.ui.meter import TurnMeter
from agent.ui.widgets.approval import ApprovalPanel
from agent.ui.widgets.queue_line import QueueLine

if TYPE_CHECKING:
    from agent.ui.app import AgentApp

USED_LATER = (actions, host, status)
"""Loaded here, so that the first use of each is not felt."""


async def assemble(app: "AgentApp", make_conversation: Callable[[], Widget] | None) -> None:
    conversation = (make_conversation or _real_conversation)()
    panel, queue = ApprovalPanel(app.clock), QueueLine()
    slot, bottom = app.main.query_one("#conversation-slot"), app.main.query_one("#bottom")
    conversation.display = False
    await slot.mount(conversation)
    await bottom.mount(panel, queue, before=0)

    def on_content(has_content: bool) -> None:
        if conversation.display != has_content:
            conversation.display = has_content
            app.main.query_one("#welcome").display = not has_content

    bridge = Bridge(
        cast("Conversation", conversation),
        panel,
        queue,
        TurnMeter(app.clock),
        on_request=app.on_request,
        on_turn_finished=app.on_turn_finished,
        on_content=on_content,
    )

    live = LiveSession(
        app.options.open_session,
        app.options.services,
        show=app.show,
        replay=bridge.replay,
        changed=app.session_changed,
        clock=app.clock,
    )

    async def list_files() -> list[str]:
        files = await live.service("files", limit=100_000)
        if not isinstance(files, list):
            raise AgentError("the session does not list files")
        return [str(name) for name in files]

    def is_current(target: Completable) -> bool:
        return completable(app.prompt.before_cursor) == target

    app.adopt(bridge, live, Completer(app.menu, list_files, is_current, app.clock))


def _real_conversation() -> Widget:
    from agent.ui.conversation.view import ConversationView

    return ConversationView()
