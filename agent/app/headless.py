"""`agent run` from end to end: task, server, turns, git, and the exit code that tells how it went."""

import asyncio
import gc
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from agent.app.authorship import Authorship
from agent.app.background import start_in_background
from agent.app.changes import Changes, commit_message, require_git, start_branch
from agent.app.interruption import ended_by_signals
from agent.app.output import RunOutput
from agent.app.request import RunRequest, resolve_directory, resolve_task
from agent.app.serving import Serving, choose
from agent.config.load import LoadedSettings, find_project_root, load_settings
from agent.core.cancel import InterruptedRunError, closing, halting, unless_cancelled
from agent.core.errors import AgentError, ExitCode, ServerError
from agent.core.events import (
    AssistantReplied,
    Event,
    Notice,
    Prefill,
    SessionStarted,
    StepFinished,
    TurnFinished,
    TurnReason,
    to_record,
)
from agent.core.limits import TimeLimit
from agent.core.stats import StepStats, total
from agent.headless.figures import figures_line
from agent.headless.jsonl import result_record
from agent.headless.outcome import RunOutcome
from agent.headless.task import Task
from agent.repo.git import RepoState, inspect
from agent.resources import state_folder
from agent.server.record import Endpoint
from agent.session.ledger import SessionLedger
from agent.session.store import SessionStore, secrets_in

Result = TypeVar("Result")
_TRANSIENT = frozenset({"text_delta", "reasoning_delta", "tool_call_delta", "prefill", "tool_output"})


class TimeIsUpError(AgentError):
    """The seconds of a run were used up outside of its turn."""

    exit_code = ExitCode.LIMIT


def run_headless(request: RunRequest, serve: Callable[[LoadedSettings], Serving] = choose) -> int:
    """Does one task; returns the exit code.

    Raises AgentError or KeyboardInterrupt where nothing could be begun; in the JSON forms the result is
    printed before.
    """
    output = RunOutput(request.output, progress=sys.stderr, answer=sys.stdout)
    try:
        return asyncio.run(_prepare(request, serve, output).execute())
    except AgentError as error:
        output.refuse(error)
        raise
    except KeyboardInterrupt:
        output.refuse(InterruptedRunError())
        raise
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        problem = AgentError(f"{error.strerror or error}{where}")
        output.refuse(problem)
        raise problem from error


def _prepare(request: RunRequest, serve: Callable[[LoadedSettings], Serving], output: RunOutput) -> "_Run":
    workspace = resolve_directory(request)
    task = resolve_task(request)
    flags = {"profile": task.profile} if task.profile else {}
    loaded = load_settings(find_project_root(workspace), os.environ, flags)
    if loaded.settings.check.command and not task.check:
        task = replace(task, check=loaded.settings.check.command)
    deadline = TimeLimit(task.max_seconds or loaded.settings.limits.max_seconds)
    return _Run(request, task, workspace, loaded, serve(loaded), output, deadline)


@dataclass(slots=True)
class _Run:
    """The state of one run; the methods are its phases, in order."""

    request: RunRequest
    task: Task
    workspace: Path
    loaded: LoadedSettings
    serving: Serving
    output: RunOutput
    deadline: TimeLimit
    outcome: RunOutcome = field(default_factory=RunOutcome)
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    started: float = field(default_factory=time.monotonic)
    steps: list[StepStats] = field(default_factory=list)
    failure: AgentError | None = None

    async def execute(self) -> int:
        self.output.reader_left = self.cancel.set
        with ended_by_signals(self.cancel):
            warm = asyncio.get_running_loop().run_in_executor(None, _import_client)
            try:
                await require_git(self.workspace, self.request.branch, commit=self.request.commit)
                endpoint = self.serving.running()
                if endpoint is None:
                    endpoint = await self._in_time(self.serving.endpoint(self.output.show))
                try:
                    return await self._in_session(endpoint)
                finally:
                    await self._release(endpoint)
            finally:
                await asyncio.gather(warm, return_exceptions=True)

    async def _in_time(self, work: Awaitable[Result]) -> Result:
        """The result of `work`. Raises InterruptedRunError or TimeIsUpError if it has to end before."""
        async with halting(self.cancel, self.deadline.remaining) as halt:
            try:
                return await unless_cancelled(work, halt)
            except InterruptedRunError:
                if self.cancel.is_set():
                    raise
                raise TimeIsUpError(self.deadline.stop().detail) from None

    async def _in_session(self, endpoint: Endpoint) -> int:
        secrets = (endpoint.api_key, *secrets_in(os.environ))
        with SessionStore.create(
            state_folder(),
            self.workspace,
            profile=endpoint.profile,
            task=self.task.text,
            secrets=secrets,
            report=lambda text: self.output.show(Notice(text=text, level="warning")),
        ) as store:
            session = _Session(self, endpoint, store)
            before = await session.converse()
            return await session.conclude(before)

    async def _release(self, endpoint: Endpoint) -> None:
        problem = await self.serving.release(endpoint)
        if problem and self.output.form == "text":
            self.output.show(Notice(text=problem, level="warning"))
