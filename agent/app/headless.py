"""`agent run` from end to end: task, server, turns, git, and the exit code that tells how it went."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from agent.app.request import RunRequest, resolve_directory, resolve_task
from agent.app.serving import Serving, choose
from agent.config.load import LoadedSettings, find_project_root, load_settings
from agent.core.cancel import unless_cancelled
from agent.core.errors import AgentError, UsageError
from agent.core.events import Event, Notice, SessionStarted, TurnFinished, to_record
from agent.headless.figures import figures_line
from agent.headless.jsonl import JsonLinesFront, result_record
from agent.headless.outcome import RunOutcome
from agent.headless.task import Task
from agent.headless.text import TextFront
from agent.repo.git import RepoState
from agent.resources import state_folder
from agent.server.record import Endpoint
from agent.session.ledger import SessionLedger
from agent.session.store import SessionStore, secrets_in

Emit = Callable[[Event], None]
_TRANSIENT = frozenset({"text_delta", "reasoning_delta", "tool_call_delta", "prefill", "tool_output"})


def run_headless(request: RunRequest) -> int:
    """Does one task; returns the exit code. Raises AgentError where nothing could be begun."""
    workspace = resolve_directory(request)
    task = resolve_task(request)
    flags = {"profile": task.profile} if task.profile else {}
    loaded = load_settings(find_project_root(workspace), os.environ, flags)
    if loaded.settings.check.command and not task.check:
        task = replace(task, check=loaded.settings.check.command)
    run = _Run(request, task, workspace, loaded, choose(loaded))
    return asyncio.run(run.execute())


@dataclass(slots=True)
class _Run:
    """The state of one run; the methods are its phases, in order."""

    request: RunRequest
    task: Task
    workspace: Path
    loaded: LoadedSettings
    serving: Serving
    outcome: RunOutcome = field(default_factory=RunOutcome)
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    started: float = field(default_factory=time.monotonic)
    store: SessionStore | None = None

    async def execute(self) -> int:
        front = self._front()
        self._catch_signals()
        warm = asyncio.get_running_loop().run_in_executor(None, _import_client)
        repository = asyncio.ensure_future(self._inspect())
        try:
            endpoint = self.serving.running()
            if endpoint is None:
                endpoint = await unless_cancelled(self.serving.endpoint(front.show), self.cancel)
            return await self._converse(front, endpoint, repository)
        finally:
            repository.cancel()
            await asyncio.gather(warm, repository, return_exceptions=True)
            if self.store is not None:
                self.store.close()

    def _front(self) -> TextFront | JsonLinesFront:
        if self.request.output == "jsonl":
            return JsonLinesFront(sys.stdout)
        return TextFront(sys.stderr, sys.stdout, terminal=sys.stderr.isatty())

    def _catch_signals(self) -> None:
        """The first signal ends the turn in order, a second one ends the process at once."""

        def interrupt() -> None:
            if self.cancel.is_set():
                os._exit(130)
            self.cancel.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, interrupt)

    async def _inspect(self) -> RepoState:
        from agent.repo.git import inspect

        return await inspect(self.workspace)

    async def _converse(
        self, front: TextFront | JsonLinesFront, endpoint: Endpoint, repository: "asyncio.Future[RepoState]"
    ) -> int:
        from agent.app.conversation import Setting, open_conversation

        emit = self._recorder(front)
        self.store = self._open_store(endpoint, emit)
        for notice in self.loaded.notices:
            emit(Notice(text=notice, level="warning"))
        ledger = SessionLedger(
            self.workspace, self.store.folder, report=lambda text: emit(Notice(text=text, level="warning"))
        )
        if self.request.branch or self.request.commit:
            await self._prepare_git(await repository, emit)
        setting = Setting(
            workspace=self.workspace,
            settings=self.loaded.settings,
            profile=self.serving.profile,
            endpoint=endpoint,
            ledger=ledger,
            spill_folder=self.store.folder / "output",
            cancel=self.cancel,
        )
        conversation = await open_conversation(self.task, setting, emit)
        emit(
            SessionStarted(
                session_id=self.store.id,
                workspace=str(self.workspace),
                profile=endpoint.profile,
                model=conversation.model_name,
                context_tokens=endpoint.context_tokens,
                tool_protocol=conversation.protocol_name,
            )
        )
        before = await repository
        async for event in conversation.events():
            emit(event)
        await conversation.close()
        return await self._conclude(front, before, ledger, emit)

    def _recorder(self, front: TextFront | JsonLinesFront) -> Emit:
        """What every event passes through: the judge of the run, the session file, the front."""

        def emit(event: Event) -> None:
            self.outcome.observe(event)
            if self.store is not None and event.type not in _TRANSIENT:
                self.store.append(to_record(event))
            if not isinstance(event, TurnFinished) or isinstance(front, JsonLinesFront):
                front.show(event)

        return emit

    def _open_store(self, endpoint: Endpoint, emit: Emit) -> SessionStore:
        return SessionStore.create(
            state_folder(),
            self.workspace,
            profile=endpoint.profile,
            task=self.task.text,
            secrets=(endpoint.api_key, *secrets_in(os.environ)),
            report=lambda text: emit(Notice(text=text, level="warning")),
        )

    async def _prepare_git(self, state: RepoState, emit: Emit) -> None:
        if not state.is_repo:
            raise UsageError(
                f"--branch and --commit need a git repository: {state.problem or self.workspace}",
                "run `git init` first, or leave them out",
            )
        if self.request.branch:
            from agent.repo.git import create_branch

            await create_branch(self.workspace, self.request.branch)
            emit(Notice(text=f"on the new branch {self.request.branch}"))

    async def _conclude(
        self, front: TextFront | JsonLinesFront, before: RepoState, ledger: SessionLedger, emit: Emit
    ) -> int:
        from agent.repo.git import changed_since

        finished = self.outcome.finished
        if finished is None:
            raise AgentError("the turn ended without a result")
        changed = await changed_since(before, ledger.changed_files())
        commit = await self._commit(finished, before, changed, ledger, emit)
        code = self.outcome.exit_code
        seconds = time.monotonic() - self.started
        names = [_relative(path, self.workspace) for path in changed]
        record = result_record(
            finished,
            exit_code=int(code),
            session_id=self.store.id if self.store else "",
            changed=names,
            denied=self.outcome.denied,
            check_passed=self.outcome.check.passed if self.outcome.check else None,
            seconds=seconds,
            commit=commit,
        )
        if self.store is not None:
            self.store.append(record)
        if isinstance(front, TextFront) and self.request.output == "text":
            summary = f"{finished.steps} steps · {seconds:.1f} s · {figures_line(finished.stats)}"
            front.finish(finished, changed=names, summary=summary)
        else:
            JsonLinesFront(sys.stdout).write(record)
        return int(code)

    async def _commit(
        self,
        finished: TurnFinished,
        before: RepoState,
        changed: list[Path],
        ledger: SessionLedger,
        emit: Emit,
    ) -> str | None:
        if not self.request.commit or not changed or finished.reason != "done":
            return None
        from agent.repo.git import commit_paths

        message = commit_message(finished.answer, self.task.text)
        foreign = ledger.foreign_files()
        result = await commit_paths(self.workspace, changed, message, before, dirty_before=foreign)
        for path, reason in result.skipped:
            emit(Notice(text=f"not committed: {path}: {reason}", level="warning"))
        if result.note:
            emit(Notice(text=result.note))
        if result.commit:
            emit(Notice(text=f"committed {result.commit[:10]}"))
        return result.commit


def commit_message(answer: str, task: str) -> str:
    """The model's closing words as a commit message: the first sentence, then the rest."""
    text = answer.strip() or task.strip()
    first, _, rest = text.partition("\n")
    if len(first) > 72:
        cut = first.rfind(" ", 0, 70)
        cut = cut if cut > 30 else 70
        first, rest = f"{first[:cut]} …", f"… {first[cut:].strip()}\n{rest}"
    return f"{first}\n\n{rest.strip()}".strip() + "\n"


def _relative(path: Path, workspace: Path) -> str:
    try:
        return path.relative_to(workspace).as_posix()
    except ValueError:
        return str(path)


def _import_client() -> None:
    """Loads the HTTP client while the disk and git are being waited for."""
    import_module("openai")
