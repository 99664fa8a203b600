"""The only place where an event of the session becomes something on the screen."""

from collections.abc import Callable, Sequence
from typing import Protocol

from agent.core.events import (
    ApprovalRequest,
    ApprovalSettled,
    AssistantReplied,
    ContextStatus,
    Event,
    ModeChanged,
    Prefill,
    QueueChanged,
    ServerState,
    SessionStarted,
    TurnFinished,
    UserMessageAdded,
)
from agent.ui.meter import TurnMeter
from agent.ui.plan import Plan, updated

_SILENT = (SessionStarted, ServerState, ContextStatus, ModeChanged, QueueChanged, Prefill)
"""Events that put nothing into the conversation."""


class Conversation(Protocol):
    """What the bridge needs of the view of the conversation."""

    def show(self, event: Event) -> None: ...

    def load_history(self, events: Sequence[Event]) -> None: ...

    def add_user(self, text: str) -> None: ...

    def clear(self) -> None: ...


class Approvals(Protocol):
    def add(self, request: ApprovalRequest) -> None: ...

    def settle(self, request_id: str) -> None: ...

    def clear(self) -> None: ...


class Queue(Protocol):
    def show(self, steering: tuple[str, ...], follow_ups: tuple[str, ...]) -> None: ...


class Bridge:
    """Takes events one by one; each costs little, whatever the length of the session."""

    def __init__(
        self,
        conversation: Conversation,
        approvals: Approvals,
        queue: Queue,
        meter: TurnMeter,
        *,
        on_request: Callable[[ApprovalRequest], None],
        on_turn_finished: Callable[[TurnFinished], None],
        on_content: Callable[[bool], None],
        on_plan: Callable[[Plan], None] = lambda plan: None,
    ) -> None:
        self._conversation = conversation
        self._on_content = on_content
        self._on_plan = on_plan
        self._approvals = approvals
        self._queue = queue
        self._on_request = on_request
        self._on_turn_finished = on_turn_finished
        self._echoed: list[str] = []
        self.meter = meter
        self.last_reply = ""
        self.server_detail = ""
        self.plan: Plan = ()

    def echo(self, text: str) -> None:
        """Shows what a person sent at once; the event that tells of it later is then no news."""
        self._echoed.append(text)
        self.show_typed(text)

    def show_typed(self, text: str) -> None:
        """Shows what a person typed that is no message to the model."""
        self._on_content(True)
        self._conversation.add_user(text)

    def show_waiting(self, texts: Sequence[str]) -> None:
        """Texts that wait for the session itself."""
        self._queue.show((), tuple(texts))

    def clear(self) -> None:
        """Empties the screen for another session."""
        self._echoed.clear()
        self._conversation.clear()
        self._approvals.clear()
        self._queue.show((), ())
        self._on_content(False)
        self.meter.restart()
        self.last_reply = ""
        self.server_detail = ""
        self._set_plan(())

    def show(self, event: Event) -> None:
        self.meter.note(event)
        if isinstance(event, UserMessageAdded) and self._was_echoed(event.text):
            return
        if not isinstance(event, _SILENT):
            self._on_content(True)
        self._conversation.show(event)
        if isinstance(event, ApprovalRequest):
            self._approvals.add(event)
            self._on_request(event)
        elif isinstance(event, ApprovalSettled):
            self._approvals.settle(event.request_id)
        elif isinstance(event, QueueChanged):
            self._queue.show(event.steering, event.follow_ups)
        elif isinstance(event, AssistantReplied):
            self.last_reply = event.text or self.last_reply
            self._set_plan(updated(self.plan, event.text))
        elif isinstance(event, ServerState):
            self.server_detail = event.detail
        elif isinstance(event, TurnFinished):
            self.last_reply = event.answer or self.last_reply
            self._on_turn_finished(event)

    def replay(self, events: Sequence[Event]) -> None:
        """Shows events of an earlier time: nothing is asked and nothing runs."""
        for event in events:
            if isinstance(event, TurnFinished):
                self.meter.note_past(event)
                self.last_reply = event.answer or self.last_reply
            elif isinstance(event, AssistantReplied):
                self._set_plan(updated(self.plan, event.text))
        if not events:
            return
        self._on_content(True)
        if self._echoed:  # sent while the session was being opened: it comes after what was before
            self._conversation.clear()
        self._conversation.load_history(events)
        for text in self._echoed:
            self._conversation.add_user(text)

    def _set_plan(self, plan: Plan) -> None:
        if plan != self.plan:
            self.plan = plan
            self._on_plan(plan)

    def _was_echoed(self, text: str) -> bool:
        # The session may have put more around it: a listing of files, what a mention stands for.
        for echoed in self._echoed:
            if echoed.strip() in text:
                self._echoed.remove(echoed)
                return True
        return False
