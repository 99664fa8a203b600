"""Sessions for programs in Python: `from agent import Agent`. See docs/library.md."""

import asyncio
import contextlib
import inspect
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from agent.core.errors import AgentError, UsageError
from agent.core.events import ApprovalRequest, Event, TurnFinished, TurnReason
from agent.core.handle import Answer, SessionFacts, SessionMode
from agent.core.stats import StepStats

if TYPE_CHECKING:
    from agent.config.load import LoadedSettings
    from agent.core.handle import SessionHandle

Approve = Callable[[ApprovalRequest], "Answer | bool | Awaitable[Answer | bool]"]
"""Decides about one call of a tool: `True` allows it once, `False` refuses it, an `Answer` says more."""

_STEPS_TO_CLOSE = 5
_NOBODY = Answer(kind="deny", reason="nobody is there to ask")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended.

    `reason` is `done` where the model finished, see docs/headless.md for the others; `detail` says in one
    line why it ended. `stats` has tokens, seconds and drafting of all steps. `changed` are the files that
    tools changed, from the workspace.
    """

    session_id: str
    reason: TurnReason
    answer: str
    detail: str
    steps: int
    stats: StepStats
    changed: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        return self.reason == "done"


class Agent:
    """A conversation with a model in a folder, for use with `async with`.

    The server is started in the background, or found where it runs; the first turn waits for it. One turn
    runs at a time. Everything is recorded as in the terminal: `session_id` goes on later with `resume`,
    and `agent undo` takes changes back.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str] = ".",
        *,
        profile: str = "",
        permissions: SessionMode | None = None,
        approve: Approve | None = None,
        resume: str = "",
        fork: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """
        Args:
            workspace: the folder to work in.
            profile: the server profile; empty for the one of the settings, or of the session that goes on.
            permissions: the mode: `plan`, `ask`, `accept-edits` or `auto`; None for that of the settings.
            approve: is asked where the rules say so; without it such calls are refused.
            resume: an earlier session of this folder: its id, or `last`.
            fork: go on in a copy of `resume`.
            settings: more settings by dotted key, as `{"limits.max_steps": 20}`.
        """
        self._workspace = Path(workspace)
        self._flags = {**(settings or {})}
        if profile:
            self._flags["profile"] = profile
        if permissions:
            self._flags["permissions.mode"] = permissions
        self._approve = approve
        self._resume = resume
        self._fork = fork
        self._handle: SessionHandle | None = None
        self._events: AsyncIterator[Event] | None = None
        self._is_running = False
        self._is_leaving = False
        self._left = asyncio.Event()
        self._asking: set[asyncio.Task[None]] = set()
        self._result: TurnResult | None = None

    async def __aenter__(self) -> "Agent":
        """Raises UsageError: settings, profile, session or folder cannot be used."""
        if self._handle is not None:
            raise UsageError("this agent is open already", "make another one for a second session")
        from agent.app.chat.interactive import open_session

        loaded = await asyncio.to_thread(self._settings)
        self._handle = await open_session(
            self._workspace, loaded=loaded, resume=self._resume or None, fork=self._fork
        )
        self._events = self._handle.events()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._asking:
            task.cancel()
        handle, self._handle = self._handle, None
        if handle is not None:
            await handle.close()

    @property
    def facts(self) -> SessionFacts:
        """What is known of the session at this moment: profile, mode, model, context, state of the server."""
        return self._open_handle().facts

    @property
    def session_id(self) -> str:
        return self.facts.session_id

    @property
    def result(self) -> TurnResult:
        """How the last turn ended. Raises UsageError before the first has."""
        if self._result is None:
            raise UsageError("no turn has ended yet")
        return self._result

    async def run(self, prompt: str) -> AsyncGenerator[Event, None]:
        """One turn, event by event; `turn_finished` is the last. Leaving the loop early cancels the turn.

        A failure of the server or a limit is the reason of the turn's end, no exception.

        Raises:
            UsageError: the prompt is empty, or a turn runs already.
        """
        if not prompt.strip():
            raise UsageError("the prompt is empty")
        await self._wait_for_a_turn_that_was_left()
        handle, events = self._open_handle(), self._open_events()
        self._is_running, self._is_leaving = True, False
        self._left.clear()
        changed: dict[str, None] = {}
        is_over = False
        try:
            handle.take_back_queued()
            handle.prompt(prompt)
            async for event in events:
                is_over = isinstance(event, TurnFinished)
                self._see(event, changed)
                yield event
                if is_over:
                    return
        finally:
            if not is_over:
                await self._abandon(handle, events, changed)
            self._is_running = False
            self._left.set()

    async def ask(self, prompt: str) -> TurnResult:
        """One whole turn. Raises what `run` does."""
        async with contextlib.aclosing(self.run(prompt)) as events:
            async for _ in events:
                continue
        return self.result

    def cancel(self) -> None:
        """Ends the running turn: generation, tools and questions. `run` goes on to its end."""
        self._open_handle().cancel()

    async def command(self, name: str, **arguments: Any) -> Any:
        """A service of the session, such as `undo`, `diff` or `compact`. Raises UsageError."""
        return await self._open_handle().command(name, arguments)

    def _settings(self) -> "LoadedSettings":
        from agent.app.chat.record import profile_of
        from agent.config.load import find_project_root, load_settings

        flags = dict(self._flags)
        if self._resume and "profile" not in flags:
            flags["profile"] = profile_of(self._workspace.resolve(), self._resume) or None
        return load_settings(find_project_root(self._workspace), os.environ, flags)

    def _open_handle(self) -> "SessionHandle":
        if self._handle is None:
            raise UsageError("this agent is not open", "use it with: async with Agent(...) as agent")
        return self._handle

    def _open_events(self) -> AsyncIterator[Event]:
        if self._events is None:
            raise UsageError("this agent is not open", "use it with: async with Agent(...) as agent")
        return self._events

    def _see(self, event: Event, changed: dict[str, None]) -> None:
        if isinstance(event, ApprovalRequest):
            task = asyncio.create_task(self._decide(event))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        elif event.type == "tool_finished" and event.outcome == "ok":
            changed.update((diff.path, None) for diff in event.diffs)
        elif isinstance(event, TurnFinished):
            self._result = TurnResult(
                session_id=self.session_id,
                reason=event.reason,
                answer=event.answer,
                detail=event.detail,
                steps=event.steps,
                stats=event.stats,
                changed=tuple(changed),
            )

    async def _decide(self, request: ApprovalRequest) -> None:
        answer = _NOBODY
        try:
            if self._approve is not None:
                said = self._approve(request)
                answer = _answer_of(await said if inspect.isawaitable(said) else said)
        except Exception as error:  # the call must not wait for ever, and the caller learns of it
            answer = Answer(kind="deny", reason=f"the question failed: {type(error).__name__}")
            asyncio.get_running_loop().call_exception_handler(
                {"message": "the approve callback of an agent failed", "exception": error}
            )
        if self._handle is not None:
            self._handle.answer(request.request_id, answer)

    async def _wait_for_a_turn_that_was_left(self) -> None:
        """After a `break` Python closes the generator of the turn a moment later."""
        for _ in range(_STEPS_TO_CLOSE):
            if not self._is_running or self._is_leaving:
                break
            await asyncio.sleep(0)
        if self._is_running and not self._is_leaving:
            raise UsageError("a turn runs already", "one session has one turn at a time")
        if self._is_running:
            await self._left.wait()

    async def _abandon(
        self, handle: "SessionHandle", events: AsyncIterator[Event], changed: dict[str, None]
    ) -> None:
        """The caller has left the loop: the turn ends, and what it still tells is dropped."""
        self._is_leaving = True
        if self._handle is None:
            return
        handle.cancel()
        async for event in events:
            self._see(event, changed)
            if isinstance(event, TurnFinished):
                return


def _answer_of(said: Answer | bool) -> Answer:
    if isinstance(said, Answer):
        return said
    return Answer(kind="once") if said else Answer(kind="deny")


__all__ = ["Agent", "AgentError", "Answer", "Approve", "TurnResult"]
