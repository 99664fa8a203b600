"""An application with a played session behind it, and a plain list as its conversation."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.app import App
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Static
from textual.worker import Worker, WorkerCancelled, WorkerState

from agent.core.events import Event, Notice, TextDelta
from agent.core.handle import SessionHandle
from agent.ui.app import AgentApp
from agent.ui.conversation.view import ConversationView
from agent.ui.options import Opening, UiOptions
from agent.ui.widgets.approval import ApprovalPanel
from tests.fakes.fake_handle import FakeHandle
from tests.patience import PATIENCE_SECONDS

SIZES = ((80, 24), (120, 40), (200, 60))


class PlainConversation(Static):
    """Keeps what it is shown, as text."""

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.events: list[Event] = []
        self.lines: list[str] = []

    def render(self) -> Content:
        return Content("\n".join(self.lines[-50:]))

    def show(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Notice | TextDelta):
            self._add(event.text)

    def load_history(self, events: Sequence[Event]) -> None:
        for event in events:
            self.show(event)

    def add_user(self, text: str) -> None:
        self._add(f"> {text}")

    def clear(self) -> None:
        self.events.clear()
        self.lines.clear()
        self.refresh()

    def _add(self, line: str) -> None:
        self.lines.append(line)
        self.refresh()


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Rig:
    """`handles` are given out one for each opening; the last one again and again."""

    handles: list[FakeHandle] = field(default_factory=lambda: [FakeHandle()])
    options: dict[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    openings: list[Opening] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    conversation: PlainConversation = field(default_factory=PlainConversation)

    def __post_init__(self) -> None:
        options = {"workspace": Path("/home/me/project"), "open_session": self._open, **self.options}
        self.app = AgentApp(UiOptions(**options), lambda: self.conversation, self.clock, self.sent.append)

    async def _open(self, opening: Opening) -> SessionHandle:
        self.openings.append(opening)
        return self.handles[min(len(self.openings), len(self.handles)) - 1]

    @property
    def handle(self) -> FakeHandle:
        return self.handles[max(0, min(len(self.openings), len(self.handles)) - 1)]

    @property
    def panel(self) -> ApprovalPanel:
        return self.app.main.query_one(ApprovalPanel)

    @property
    def lines(self) -> list[str]:
        return self.conversation.lines


class RealRig(Rig):
    """With the real view in the middle."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.app.make_conversation = None

    @property
    def view(self) -> ConversationView:
        return self.app.main.query_one(ConversationView)

    @property
    def hints(self) -> str:
        return self.app.hints.render().plain


async def settle(pilot: Pilot[Any], rig: Rig) -> None:
    """Waits until the session is open and nothing is left to do."""
    await until(pilot, lambda: rig.app.facts is not None)
    await rest(pilot)


async def until(pilot: Pilot[Any], is_met: Callable[[], object]) -> None:
    """Waits for what a worker or another thread brings about, or something that waits for the person."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            await pilot.pause()
            if is_met():
                return


async def done_or_asking(pilot: Pilot[Any]) -> None:
    """Waits until a command is done, or asks the person something on a screen of its own."""
    calm = 0
    async with asyncio.timeout(PATIENCE_SECONDS):
        while calm < 2:
            await pilot.pause()
            is_asking = len(pilot.app.screen_stack) > 1
            is_busy = bool(_at_work(pilot.app)) and not is_asking
            calm = 0 if is_busy or _has_mail(pilot.app) else calm + 1


async def rest(pilot: Pilot[Any]) -> None:
    """Waits until no message is on its way and nothing works in the background.

    A pause alone ends when the process was idle for a moment, which on a busy machine says nothing.
    """
    calm = 0
    while calm < 2:
        await pilot.pause()
        working = _at_work(pilot.app)
        for work in working:
            if work.state != WorkerState.PENDING:
                with contextlib.suppress(WorkerCancelled):  # a later one of its group took its place
                    await work.wait()
        calm = 0 if working or _has_mail(pilot.app) else calm + 1


def _at_work(app: App[Any]) -> list[Worker[Any]]:
    return [work for work in app.workers if work.group != "keep" and not work.is_finished]


def _has_mail(app: App[Any]) -> bool:
    return any(node.message_queue_size for node in (app, *app.screen_stack, *app.screen.walk_children()))


async def type_text(pilot: Pilot[Any], text: str) -> None:
    names = {" ": "space", "\n": "ctrl+j"}
    await pilot.press(*[names.get(character, character) for character in text])
