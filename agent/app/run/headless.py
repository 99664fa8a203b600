"""`agent run` from end to end: task, server, session, and the exit code that tells how it went."""

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agent.app.interruption import ended_by_signals
from agent.app.run.job import Job
from agent.app.run.life_signs import LifeSigns, SlotQueue
from agent.app.run.output import RunOutput
from agent.app.run.request import RunRequest, resolve_directory, resolve_task
from agent.app.servers.early import EarlyReading
from agent.app.servers.serving import Serving, choose
from agent.config.load import LoadedSettings, find_project_root, load_settings
from agent.core.cancel import InterruptedRunError
from agent.core.errors import AgentError
from agent.core.events import Event, Notice, ServerState
from agent.core.limits import TimeLimit
from agent.headless.task import Task
from agent.server.record import Endpoint
from agent.session.store import EVENTS_NAME, secrets_in


def run_headless(
    request: RunRequest,
    serve: Callable[[LoadedSettings], Serving] = choose,
    early: EarlyReading | None = None,
) -> int:
    """Does one task; returns the exit code. `early` is what the server was asked to read meanwhile.

    Raises AgentError or KeyboardInterrupt where nothing could be begun; in the JSON forms the result is
    printed before.
    """
    output = RunOutput(request.output, progress=sys.stderr, answer=sys.stdout)
    try:
        return asyncio.run(_execute(_prepare(request, serve, output, early)))
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


def _prepare(
    request: RunRequest,
    serve: Callable[[LoadedSettings], Serving],
    output: RunOutput,
    early: EarlyReading | None,
) -> Job:
    workspace = resolve_directory(request)
    task, loaded = task_with_settings(request, workspace)
    return Job(
        request=request,
        task=task,
        workspace=workspace,
        serving=serve(loaded),
        output=output,
        deadline=TimeLimit(task.max_seconds or loaded.settings.limits.max_seconds),
        early=early,
    )


def task_with_settings(request: RunRequest, workspace: Path) -> tuple[Task, LoadedSettings]:
    """The task, and the settings of the project at `workspace` for it. Raises UsageError for any mistake."""
    task = resolve_task(request)
    if request.resume is not None:
        task = replace(task, profile=task.profile or earlier_profile(request, workspace))
    flags = {"profile": task.profile} if task.profile else {}
    loaded = load_settings(find_project_root(workspace), os.environ, flags)
    if request.prompt is not None and request.prompt.startswith("/"):
        _require_known_slash(request.prompt, workspace, loaded)
    if loaded.settings.check.command and not task.check:
        task = replace(task, check=loaded.settings.check.command)
    from agent.app.turns.workbench import gate_rules

    gate_rules(loaded.settings, task)  # a rule that is none is noticed now, not after the server's start
    return task, loaded


def _require_known_slash(prompt: str, workspace: Path, loaded: LoadedSettings) -> None:
    from agent.app.extras.slash import require_known_slash
    from agent.app.mcp.servers import has_server

    require_known_slash(prompt, workspace, lambda name: has_server(workspace, loaded.settings, name))


def earlier_profile(request: RunRequest, workspace: Path) -> str | None:
    """The profile of the session that goes on. Raises UsageError where there is no such session."""
    from agent.app.chat.record import chosen_session
    from agent.session.catalogue import summarise
    from agent.session.formats import require_known_format

    folder = chosen_session(workspace, request.resume or "", allow_open=request.fork, kind="run")
    require_known_format(folder / EVENTS_NAME)
    return summarise(folder).profile or None


async def _execute(job: Job) -> int:
    with ended_by_signals(job.cancel):
        return await execute(job)


async def execute(job: Job) -> int:
    """Does a job up to its result; returns the exit code. Signals are the caller's business.

    Raises AgentError where nothing could be begun.
    """
    job.output.reader_left = job.cancel.set
    warm = asyncio.get_running_loop().run_in_executor(None, _import_client)
    signs = LifeSigns(job.output)
    beating = asyncio.ensure_future(signs.run())
    try:
        await _require_git(job)
        endpoint = job.serving.running()
        if endpoint is None:
            endpoint = await _endpoint(job)
        else:
            job.serving.tell_findings(endpoint, job.output.show)
        try:
            if (record := job.serving.record_of(endpoint)) is not None:
                signs.why_busy = SlotQueue(record)
            return await _in_session(job, endpoint)
        finally:
            await _release(job, endpoint)
    finally:
        beating.cancel()
        await asyncio.gather(warm, beating, return_exceptions=True)


async def _endpoint(job: Job) -> Endpoint:
    last = ServerState(state="")

    def show(event: Event) -> None:
        nonlocal last
        last = event if isinstance(event, ServerState) else last
        job.output.show(event)

    def hint() -> str:
        """What to do where all the time went into waiting for a server that is busy."""
        ends = "`agent server stop --force` ends that"
        return f"it was {last.detail}; {ends}" if last.state == "waiting" else ""

    return await job.in_time(job.serving.endpoint(show), hint)


async def _require_git(job: Job) -> None:
    """Refuses before anything is begun what git would refuse at the end. Raises UsageError."""
    if job.request.branch or job.request.commit:
        from agent.app.files.changes import require_git

        await require_git(job.workspace, job.request.branch, commit=job.request.commit)


async def _in_session(job: Job, endpoint: Endpoint) -> int:
    # The tools and all they need are loaded while the server and the HTTP client are.
    from agent.app.chat.record import open_store
    from agent.app.run.unattended import UnattendedSession

    store, old = await asyncio.to_thread(
        open_store,
        job.workspace,
        profile=endpoint.profile,
        kind="run",
        task=job.task.text,
        resume=job.request.resume,
        fork=job.request.fork,
        secrets=(endpoint.api_key, *secrets_in(os.environ)),
        report=lambda text: job.output.show(Notice(text=text, level="warning")),
    )
    with store:
        return await UnattendedSession(job, endpoint, store, old).run()


async def _release(job: Job, endpoint: Endpoint) -> None:
    problem = await job.serving.release(endpoint)
    # Nothing may follow the result in the JSON forms.
    if problem and job.output.form == "text":
        job.output.show(Notice(text=problem, level="warning"))


def _import_client() -> None:
    """Loads the HTTP client while others are waited for; garbage is collected from then on."""
    from agent.llm.connection import load

    load()
    gc.freeze()
    gc.enable()
