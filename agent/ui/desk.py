"""The session at the screen: what it tells is shown, and what a person does reaches it.

It exists only after the first paint, when all that takes long to import is there.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from textual.widget import Widget
from textual.worker import Worker

from agent.core.errors import AgentError
from agent.core.events import ApprovalRequest, Event, QuestionAsked, QueueChanged, TurnFinished
from agent.core.handle import MODES, Answer, SessionFacts, SessionMode
from agent.ui import actions
from agent.ui.attention import signal
from agent.ui.bridge import Bridge, Conversation
from agent.ui.commands.catalogue import CustomCommand, looks_like_command
from agent.ui.completer import Completer
from agent.ui.entry.completion import Completable, completable
from agent.ui.host import AppHost
from agent.ui.live import LiveSession
from agent.ui.meter import TurnMeter
from agent.ui.options import Opening
from agent.ui.preparing import Preparation
from agent.ui.questions import Questions
from agent.ui.status import segments
from agent.ui.widgets.approval import ApprovalPanel
from agent.ui.widgets.plan_line import PlanLine
from agent.ui.widgets.prompt import When
from agent.ui.widgets.queue_line import QueueLine

if TYPE_CHECKING:
    from agent.ui.app import AgentApp

FRAME_SECONDS = 0.3
"""How often the figures are brought up to date while something happens."""
IDLE_SECONDS = 5.0
MOST_IDLE_SECONDS = 40.0
"""How often they are while nothing does: what others change, such as the branch, is not told by an event."""
REST_SECONDS = 1.0


class Desk:
    """Holds the session of `app`; `conversation` and `panel` are on the screen already."""

    def __init__(
        self, app: "AgentApp", conversation: Widget, panel: ApprovalPanel, queue: QueueLine, plan: PlanLine
    ) -> None:
        self._app = app
        self.conversation = conversation
        self.panel = panel
        self.follows = True
        self._has_content = False
        self._was_interrupted = False
        self.bridge = Bridge(
            cast("Conversation", conversation),
            panel,
            queue,
            TurnMeter(app.clock),
            on_request=self._on_request,
            on_turn_finished=self._on_turn_finished,
            on_content=self._on_content,
            on_plan=plan.show,
        )
        self.live = LiveSession(
            app.options.open_session,
            app.options.services,
            show=self.show,
            replay=self.bridge.replay,
            changed=self._session_changed,
            clock=app.clock,
        )
        self.host = AppHost(app, self)
        self.preparation = Preparation(app.options.setup, app.main, self.host.tell, self.refresh, app.clock)
        self._questions = Questions(app, self.live.service, self._call_attention)
        self._completer = Completer(
            app.menu,
            self._list_files,
            self._list_commands,
            self._is_current,
            app.clock,
            self._list_documents,
        )
        self._frames = app.set_interval(FRAME_SECONDS, self.refresh, pause=True)
        self._idle_seconds = IDLE_SECONDS
        self._idle = app.set_timer(IDLE_SECONDS, self._look)

    @property
    def has_conversation(self) -> bool:
        """Whether there is one to look at and to move in."""
        return self._has_content and self.conversation.can_focus

    @property
    def facts(self) -> SessionFacts | None:
        return self.live.handle.facts if self.live.handle is not None else None

    # -- what the session tells ----------------------------------------------------------------------

    def show(self, event: Event) -> None:
        if self._questions.takes_back(event):
            return
        if isinstance(event, QuestionAsked):
            self.in_background(self._questions.ask(event))
            return
        if isinstance(event, QueueChanged):
            self._app.keep_queued((*event.steering, *event.follow_ups))
        self.bridge.show(event)
        self._frames.resume()
        self.be_awake()

    def refresh(self) -> None:
        """Brings the status bar and the line of hints up to date."""
        if not self._app.screen_stack:  # the program is ending
            return
        facts = self.facts
        figures = self.bridge.meter.figures(facts.pieces if facts is not None else 0)
        has_failed = self.live.has_failed and not self.live.is_opening
        detail = self.bridge.server_detail
        lacks = self.preparation.panel is not None
        self._app.status.show(segments(facts, figures, detail, has_failed=has_failed, lacks=lacks))
        self._app.show_hints()
        if not figures.is_running:
            self._frames.pause()

    def _look(self) -> None:
        """Looks ever more seldom, as long as nothing happens."""
        self.refresh()
        self._idle_seconds = min(2 * self._idle_seconds, MOST_IDLE_SECONDS)
        self._idle = self._app.set_timer(self._idle_seconds, self._look)

    def be_awake(self) -> None:
        """Somebody is there, or something happens: looks as often as at first."""
        if self._idle_seconds > IDLE_SECONDS:
            self._idle.stop()
            self._idle_seconds = IDLE_SECONDS
            self._idle = self._app.set_timer(IDLE_SECONDS, self._look)

    def _session_changed(self) -> None:
        """A session was opened, closed or could not be opened."""
        self._show_waiting()
        self._frames.resume()
        self.refresh()

    def _on_content(self, has_content: bool) -> None:
        if self._has_content != has_content:
            self._has_content = has_content
            self.conversation.display = has_content
            self._app.main.query_one("#welcome").display = not has_content
            self._app.show_hints()

    def _on_request(self, request: ApprovalRequest) -> None:
        if self._app.prompt.has_focus and not self._app.prompt.text:
            self.panel.focus()
        self._call_attention(f"agent asks: {request.tool}")

    def _on_turn_finished(self, event: TurnFinished) -> None:
        if self._was_interrupted or event.reason == "server_failed":
            # What never reached the model goes back into the queue, and from there to the person.
            self._was_interrupted = False
            self._give_back(self.live.take_back())
        elapsed = self.bridge.meter.figures().elapsed
        if elapsed is not None and elapsed >= self._app.options.long_turn_seconds:
            self._call_attention(f"agent: {event.detail or event.reason}")
        self.refresh()
        self._app.set_timer(REST_SECONDS, self._rest)

    def _rest(self) -> None:
        at_rest = self._app.options.at_rest
        if at_rest is not None and not self.live.is_running:
            at_rest()

    def _call_attention(self, text: str) -> None:
        if not self._app.is_looked_at:
            self._app.write_to_terminal(signal(self._app.options.notify, text, os.environ))

    # -- what the person does ------------------------------------------------------------------------

    def submit(self, text: str, when: When) -> None:
        """Acts on a whole text of the input field: a command, a shell line, or a message."""
        if looks_like_command(text.strip()):
            self.in_background(actions.run_command(self, text))
        elif text.startswith("!") and text.lstrip("! \n"):
            self.in_background(actions.run_shell(self, text))
        else:
            self.send(text, when)

    def send_first(self, text: str) -> str:
        """Sends what stood on the command line; gives it back if it is no message: that needs a session."""
        if not text:
            return ""
        self._app.past.add(text)
        if looks_like_command(text) or text.startswith("!"):
            return text
        self.send(text, "now")
        return ""

    def send(self, text: str, when: When) -> None:
        live = self.live
        if not live.is_running and not live.waiting:
            self.bridge.echo(text)
        live.send(text, when)
        if live.handle is None and not live.is_opening and live.has_failed:
            self.in_background(self._app.open_session(self._app.options.opening))
        self._show_waiting()
        self._frames.resume()

    def answer(self, request_id: str, answer: Answer) -> None:
        if self.live.handle is not None:
            self.live.handle.answer(request_id, answer)

    def do(self, what: str) -> None:
        """What a key in the input field asks for, see `Prompt.Wanted`."""
        works = {
            "history": actions.search_history,
            "editor": actions.edit_outside,
            "paste": actions.paste,
        }
        if what == "nothing":
            self.accept_offer()
        elif what == "interrupt":
            self.escape()
        elif what == "beside":
            self.focus_beside_input()
        else:
            self.in_background(works[what](self._app, self))

    def accept_offer(self) -> None:
        """Enter while nothing is typed: gets what the session lacks, if that is being offered."""
        if self.preparation.panel is not None:
            self.preparation.panel.accept()

    def escape(self) -> None:
        """Ends what is in front: the offer to get something, else the turn."""
        if self.preparation.panel is not None:
            self.preparation.panel.back()
        else:
            self.interrupt()

    def interrupt(self) -> None:
        """Ends the turn, and puts what was queued back where it was typed."""
        self._was_interrupted = self.live.is_running
        self._give_back(self.live.interrupt())
        self._show_waiting()

    def _give_back(self, texts: list[str]) -> None:
        if texts:
            self._app.prompt.put_before("\n\n".join(texts))

    def set_mode(self, mode: SessionMode) -> None:
        if self.live.handle is not None:
            self.live.handle.set_mode(mode)
            self.refresh()

    def next_mode(self) -> None:
        facts = self.facts
        if facts is not None:
            self.set_mode(MODES[(MODES.index(facts.mode) + 1) % len(MODES)])

    def focus_beside_input(self) -> None:
        """The open question, else the conversation if there is one."""
        if self.panel.display:
            self.panel.focus()
        elif self.has_conversation:
            self.conversation.focus()

    async def reopen(self, opening: Opening) -> None:
        """Closes this session and opens another on a clean screen."""
        await self.preparation.stand_back()
        await self.live.settled()
        self._give_back(self.live.take_back())
        await self.live.close()
        self.bridge.clear()
        self._app.keep_queued(())
        if await self.preparation.run(opening):
            await self.live.open(opening)

    async def redraw(self) -> None:
        """Shows the conversation as the session has it now."""
        await self.live.show_past(self.bridge.clear)
        self.refresh()

    def in_background(self, work: Coroutine[Any, Any, None]) -> Worker[None]:
        """Runs `work` beside the screen; what goes wrong becomes a line in the conversation."""
        return self._app.run_worker(self._guarded(work), exit_on_error=False)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except AgentError as error:
            self.host.tell(f"{error.message}\n{error.hint}".strip(), "error")
        except OSError as error:
            self.host.tell(f"that did not work: {error}", "error")
        finally:
            self.refresh()  # Esc has nothing to end any more

    def _show_waiting(self) -> None:
        if self.live.handle is None:
            self.bridge.show_waiting(self.live.waiting[1:])

    # -- completion ----------------------------------------------------------------------------------

    def complete(self) -> None:
        target = completable(self._app.prompt.before_cursor)
        self._app.run_worker(self._completer.complete(target), group="complete", exclusive=True)

    def _is_current(self, target: Completable) -> bool:
        return completable(self._app.prompt.before_cursor) == target

    async def _list_commands(self) -> list[CustomCommand]:
        rows = await self.live.service("commands")
        return [CustomCommand(str(row.name), str(row.summary), str(row.takes)) for row in rows or ()]

    async def _list_documents(self) -> list[str]:
        return [str(name) for name in await self.live.service("resources") or ()]

    async def _list_files(self) -> list[str]:
        files = await self.live.service("files", limit=100_000)
        if not isinstance(files, list):
            raise AgentError("the session does not list files")
        # A list of so many names takes long enough to be felt as a pause.
        return await asyncio.to_thread(lambda: [str(name) for name in files])


async def make_desk(app: "AgentApp", make_conversation: Callable[[], Widget] | None) -> Desk:
    """Puts the conversation, the panel and the queue on the screen, and a desk behind them."""
    conversation = (make_conversation or _real_conversation)()
    panel, queue, plan = ApprovalPanel(app.clock), QueueLine(), PlanLine()
    conversation.display = False
    await app.main.query_one("#conversation-slot").mount(conversation)
    await app.main.query_one("#bottom").mount(plan, panel, queue, before=0)
    return Desk(app, conversation, panel, queue, plan)


def _real_conversation() -> Widget:
    from agent.ui.conversation.view import ConversationView

    return ConversationView()
