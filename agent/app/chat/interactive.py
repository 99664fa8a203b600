"""A conversation with a person: many turns in one history, behind `agent.core.handle.SessionHandle`.

What a front may ask for is in `core.handle`; the services of `command` are in `app.services`. The turn itself
is the same loop as in `agent run`.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from agent.app.background import start_in_background
from agent.app.chat.engine import Engine, why_gone
from agent.app.chat.live import LiveSession
from agent.app.chat.opening import opened
from agent.app.chat.server_watch import watch_server
from agent.app.chat.wording import AttachingInbox, suit_the_blind, worded
from agent.app.servers.serving import Serving, choose
from agent.app.servers.warm import Warmth
from agent.app.services.compacting import compact_if_full, tell_size
from agent.app.services.dispatch import SessionServices
from agent.app.services.switching import with_a_draft_that_pays
from agent.config.load import LoadedSettings
from agent.core.cancel import InterruptedRunError, closing, unless_cancelled
from agent.core.errors import PLEASE_REPORT, AgentError, UsageError, unexpected
from agent.core.events import (
    ContextStatus,
    Event,
    ModeChanged,
    Notice,
    StepFinished,
    ToolFinished,
    TurnFinished,
    TurnReason,
    TurnStarted,
    UserMessageAdded,
)
from agent.core.handle import MODES, Answer, SessionFacts, SessionMode
from agent.core.loop import run_turn
from agent.core.messages import UserMessage
from agent.core.stats import StepStats
from agent.resources import state_folder
from agent.session.catalogue import prune

_HELD_AFTER: frozenset[TurnReason] = frozenset({"cancelled", "server_failed", "context_full"})
"""After these, what is queued waits for the person: it was written for another end."""

_CLOSING_SECONDS = 5.0


class InteractiveSession:
    """See `SessionHandle`. Made by `open_session`, inside of a running event loop.

    After a turn that was cancelled or failed with the server, queued texts stay queued until the next
    `prompt`, or until they are taken back. A prompt that never reached the model is queued again.
    """

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._services = SessionServices(live)
        self._driver: asyncio.Task[None] | None = None
        self._watch = asyncio.create_task(watch_server(live))
        self._closed = False
        self._tidied = False
        self._delivered = False

    @property
    def facts(self) -> SessionFacts:
        live = self._live
        engine = live.keeper.engine
        return SessionFacts(
            session_id=live.record.store.id,
            workspace=str(live.workspace),
            profile=live.keeper.serving.profile.name,
            mode=live.gate.mode,
            model=engine.model_name if engine else "",
            context_tokens=engine.model.context_tokens if engine else 0,
            used_tokens=self._used_tokens,
            branch=live.glance.branch,
            changed_files=live.glance.changed_files,
            is_running=live.is_running,
            server=live.server_state,
            waits_for=live.moment.waits_for,
            pieces=live.moment.pieces,
        )

    @property
    def _used_tokens(self) -> int:
        read = self._live.moment.tokens
        if self._live.is_running:
            return read or self._live.used_tokens
        return max(read, self._live.used_tokens)  # a step that was interrupted has filled the context, too

    def events(self) -> AsyncIterator[Event]:
        return self._live.outbox.events()

    def prompt(self, text: str) -> None:
        if not text.strip():
            return
        if self._driver is not None:
            self.follow_up(text)
            return
        if self._closed:
            raise UsageError("the session is closed")
        self._live.cancel.clear()
        self._live.is_running = True
        self._live.began.set()
        self._driver = asyncio.create_task(self._work(text))

    def steer(self, text: str) -> None:
        if self._driver is None:
            self.prompt(text)
        elif text.strip():
            self._live.inbox.steer(text)

    def follow_up(self, text: str) -> None:
        if self._driver is None:
            self.prompt(text)
        elif text.strip():
            self._live.inbox.follow_up(text)

    def take_back_queued(self) -> list[str]:
        return self._live.inbox.take_back()

    def cancel(self) -> None:
        self._live.cancel.set()
        for stop in self._live.commands:
            stop.set()

    def answer(self, request_id: str, answer: Answer) -> None:
        self._live.gate.answer(request_id, answer)

    def set_mode(self, mode: SessionMode) -> None:
        if mode not in MODES:
            raise UsageError(f"there is no mode {mode!r}", f"the modes are {', '.join(MODES)}")
        if mode != self._live.gate.mode:
            self._live.gate.mode = mode
            self._live.emit(ModeChanged(mode=mode))

    async def command(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if self._closed:
            raise UsageError("the session is closed")
        return await self._services.run(name, arguments)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._watch.cancel()
        self._live.inbox.take_back()
        self.cancel()
        driver = self._driver
        if driver is not None:
            await asyncio.wait({driver}, timeout=_CLOSING_SECONDS)
            driver.cancel()
            await asyncio.gather(driver, return_exceptions=True)
        live = self._live
        await self._services.settled()
        live.shell.stop_background()
        live.gate.release()
        await live.mcp.close()
        await live.glance.close()
        await self._keep()
        problem = await live.keeper.close()
        if problem:
            live.emit(Notice(text=problem, level="warning"))
        live.outbox.close()
        await asyncio.to_thread(live.record.close)

    async def _work(self, text: str) -> None:
        """Turn after turn, until nothing is queued or a turn came to an end that asks for the person."""
        live = self._live
        prompt: str | None = text
        try:
            while prompt is not None:
                live.is_running = True
                reason = await self._turn(prompt)
                live.is_running = False
                held = reason in _HELD_AFTER or live.cancel.is_set() or not self._delivered
                prompt = None if held else live.inbox.next_prompt()
                if prompt is not None:
                    live.cancel.clear()
        finally:
            live.is_running = False
            self._driver = None

    async def _turn(self, text: str) -> TurnReason:
        """One turn. Whatever happens in it, `TurnFinished` is its last event."""
        live = self._live
        conversation = live.record.conversation
        with contextlib.suppress(InterruptedRunError):
            await unless_cancelled(self._nothing_changes(), live.cancel)
        begun = TurnStarted(attempt=1, started=time.time())
        live.gate.observe(begun)
        live.emit(begun)
        if not conversation.messages:  # a list shows it while the server is still waited for
            live.record.store.append({"type": "asked", "text": text})
        conversation.begin_turn(live.turns.rows[-1].number)
        self._delivered = False
        finished: TurnFinished | None = None
        try:
            engine = await unless_cancelled(self._engine(), live.cancel)
            finished = await self._converse(engine, text)
            await self._learn(engine)
        except InterruptedRunError:
            finished = _came_to_nothing("cancelled", "interrupted")
        except AgentError as error:
            live.emit(Notice(text=str(error), level="error"))
            finished = _came_to_nothing("server_failed", error.message)
        except Exception as error:
            # A mistake of this program must not take the conversation with it.
            mistake = AgentError(unexpected(error), PLEASE_REPORT)
            live.emit(Notice(text=str(mistake), level="error"))
            finished = _came_to_nothing("gave_up", mistake.message)
        if not self._delivered:
            live.inbox.put_back(text)
        if finished.reason == "server_failed":
            await live.keeper.forget()
        if not self._tidied:
            self._tidied = True
            start_in_background(lambda: prune(state_folder(), live.workspace))
        live.glance.refresh()
        live.emit(finished)
        return finished.reason

    async def _nothing_changes(self) -> None:
        """Waits for a service that goes back or sums up: a turn begins in what it leaves."""
        async with self._live.changing:
            return

    async def _engine(self) -> Engine:
        live = self._live
        async with live.changing:
            engine = await live.keeper.ready()
            return await with_a_draft_that_pays(live, engine)

    async def _converse(self, engine: Engine, text: str) -> TurnFinished:
        live = self._live
        conversation = live.record.conversation
        live.suit(engine)
        await suit_the_blind(live, engine)
        await compact_if_full(live, engine)
        await self._keep_files(live.turns.rows[-1].number)
        said = await worded(live, text)
        await unless_cancelled(engine.warmed_up(live.emit), live.cancel)
        said = await unless_cancelled(opened(live, engine, said), live.cancel)
        for note in live.inbox.take_notes():
            conversation.add(UserMessage(note))
            live.emit(UserMessageAdded(text=note, is_note=True))
        inbox = AttachingInbox(live)
        ledger = live.record.ledger
        services = engine.services(
            live.tools, live.gate, inbox, live.cancel, live.extensions, ledger, live.log
        )
        async with closing(run_turn(conversation, said, services)) as events:
            self._delivered = True
            async for event in events:
                if isinstance(event, TurnFinished):
                    return self._explained(engine, event)
                live.gate.observe(event)
                live.emit(event)
                tell_size(live, event)
                if isinstance(event, StepFinished):
                    self._measure(engine)
                elif isinstance(event, ToolFinished):
                    live.glance.refresh()
                await live.outbox.room()
        raise RuntimeError("a turn has to end with its result")

    async def _keep_files(self, turn: int) -> None:
        """What the changed files are now, to go back to. A disk that is full is no reason to stop talking."""
        try:
            await asyncio.to_thread(self._live.record.ledger.begin_turn, turn)
        except AgentError as error:
            problem = f"the files of this moment cannot be gone back to: {error.message}"
            self._live.emit(Notice(text=problem, level="warning"))

    async def _learn(self, engine: Engine) -> None:
        """How fast the prompts of a turn were read chooses the batch of the next server."""
        from agent.app.servers.fitting import remember_steps  # the first request does not wait for this

        await remember_steps(engine.serving, self._live.turns.rows[-1].steps)

    async def _keep(self) -> None:
        """What the server has read of this conversation is kept for when it goes on."""
        live = self._live
        engine, messages = live.keeper.engine, live.record.conversation.messages
        if engine is not None and messages:
            rate = live.turns.prefill_rate(engine.serving.profile.name)
            warmth = Warmth(engine.serving, engine.endpoint)
            folder = live.record.store.folder
            held = live.slot_tokens or live.used_tokens
            await warmth.keep_session(folder, messages, tokens=held, rate=rate)

    def _measure(self, engine: Engine) -> None:
        self._live.used_tokens = engine.model.used_tokens or self._live.used_tokens
        window = engine.model.context_tokens
        self._live.emit(ContextStatus(used=self._live.used_tokens, window=window))

    def _explained(self, engine: Engine, finished: TurnFinished) -> TurnFinished:
        if finished.reason != "server_failed":
            return finished
        detail = why_gone(engine.serving, engine.endpoint, finished.detail)
        self._live.emit(Notice(text=detail, level="error"))
        return replace(finished, detail=detail)


def _came_to_nothing(reason: TurnReason, detail: str) -> TurnFinished:
    return TurnFinished(reason=reason, answer="", detail=detail, steps=0, stats=StepStats())


async def open_session(
    workspace: Path,
    *,
    loaded: LoadedSettings,
    resume: str | None = None,
    fork: bool = False,
    serve: Callable[[LoadedSettings], Serving] = choose,
    today: Callable[[], date] = date.today,
) -> InteractiveSession:
    """Opens a conversation in a folder. The server is started in the background.

    Args:
        resume: an earlier session to go on with: an id, its beginning or end, or `last`.
        fork: go on in a new session that begins as a copy of `resume`.
        serve: chooses a profile and its server; a test gives one of its own.
        today: the date where the person is.

    Raises:
        UsageError: unknown profile or session, a rule that is none, a folder that cannot be recorded.
    """
    from agent.app.chat.assembly import assemble

    live = await assemble(workspace, loaded=loaded, resume=resume, fork=fork, serve=serve)
    live.today = today
    live.glance.refresh()
    live.keeper.start()
    return InteractiveSession(live)
