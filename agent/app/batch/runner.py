"""Runs the tasks of a batch: never more at once than the server has slots, each in its work tree."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from agent.app.background import in_background
from agent.app.batch.output import NamedLines, ResultTaker
from agent.app.batch.record import BatchRecord, TaskEntry
from agent.app.run.headless import execute, task_with_settings
from agent.app.run.job import Job
from agent.app.run.output import RunOutput, error_record
from agent.app.run.request import OutputForm, RunRequest
from agent.app.servers.serving import choose
from agent.config.load import LoadedSettings
from agent.core.cancel import InterruptedRunError, unless_cancelled
from agent.core.errors import PLEASE_REPORT, AgentError, ExitCode, unexpected
from agent.core.events import ServerState
from agent.core.limits import TimeLimit
from agent.headless.task import Task
from agent.repo.git import inspect
from agent.repo.worktrees import (
    add_worktree,
    commit_everything,
    delete_unused_branch,
    discard_unused_worktree,
    is_worktree,
    remove_worktree,
)
from agent.resources import ensure_private_folder


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A task that is to be run, with the settings of the person's checkout."""

    entry: TaskEntry
    request: RunRequest
    task: Task
    loaded: LoadedSettings


@dataclass(slots=True, kw_only=True)
class BatchRunner:
    """Use `run`, once. `say` shows a line to people, `hand_on` takes the events of all tasks in `jsonl`."""

    record: BatchRecord
    form: OutputForm
    say: Callable[[str], None]
    hand_on: Callable[[dict[str, Any]], None] | None
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """Runs what is not done. How it went is in the record."""
        groups: dict[str, list[_Prepared]] = {}
        for entry in self.record.tasks:
            if entry.state == "done":
                continue
            try:
                prepared = self._prepare(entry)
            except AgentError as error:
                self._settle(entry, error_record(error))
                continue
            groups.setdefault(prepared.loaded.settings.profile, []).append(prepared)
        # One model after the other: two of them at once do not fit into most machines.
        for group in groups.values():
            if not self.cancel.is_set():
                await self._run_group(group)

    def _prepare(self, entry: TaskEntry) -> _Prepared:
        flags = dict(self.record.flags)
        flags |= {name: tuple(flags[name]) for name in ("allow", "deny")}
        folder = Path(entry.worktree) / self.record.subfolder
        request = RunRequest(
            task=entry.file, prompt=None, directory=folder, output=self.form, commit=True, **flags
        )
        task, loaded = task_with_settings(request, Path(self.record.root) / self.record.subfolder)
        return _Prepared(entry, request, task, loaded)

    async def _run_group(self, group: list[_Prepared]) -> None:
        loaded = group[0].loaded
        try:
            serving = choose(loaded)
            endpoint = await unless_cancelled(serving.endpoint(self._server_state), self.cancel)
        except InterruptedRunError:
            return
        except AgentError as error:
            for one in group:
                self._settle(one.entry, error_record(error))
            return
        at_once = max(1, min(self.record.jobs, endpoint.slots, len(group)))
        if at_once < min(self.record.jobs, len(group)):
            slots = f"{endpoint.slots} slot{'' if endpoint.slots == 1 else 's'}"
            self.say(f"{at_once} at once, because the server has {slots}")
        waiting = iter(group)
        try:
            await asyncio.gather(*(self._work(waiting) for _ in range(at_once)))
        finally:
            problem = await serving.release(endpoint)
            if problem:
                self.say(problem)

    def _server_state(self, event: ServerState) -> None:
        if event.state in ("ready", "warning"):
            self.say(f"server: {event.detail or event.state}")

    async def _work(self, waiting: Iterator[_Prepared]) -> None:
        for one in waiting:
            if self.cancel.is_set():
                return
            await self._run_one(one)

    async def _run_one(self, one: _Prepared) -> None:
        entry = one.entry
        taker = ResultTaker(entry.name, self.hand_on)
        try:
            await self._worktree_for(entry)
            code = await execute(self._job(one, taker))
        except AgentError as error:
            self._settle(entry, {**error_record(error)})
            await self._put_away(entry)
            return
        except Exception as error:
            # A mistake of this program in one task must not take the others with it.
            problem = AgentError(unexpected(error), PLEASE_REPORT)
            self._settle(entry, error_record(problem))
            return
        self._settle(entry, taker.result or {"type": "result", "exit_code": code})
        await self._put_away(entry)

    def _job(self, one: _Prepared, taker: ResultTaker) -> Job:
        loaded = one.loaded
        # The server is the batch's: no task stops it when it is done.
        kept = loaded.settings.server.model_copy(update={"reuse": True})
        settings = loaded.settings.model_copy(update={"server": kept})
        serving = choose(replace(loaded, settings=settings))
        progress = cast("Any", NamedLines(one.entry.name, sys.stderr))
        form: OutputForm = "jsonl" if self.form == "jsonl" else "json"
        return Job(
            request=one.request,
            task=one.task,
            workspace=(Path(one.entry.worktree) / self.record.subfolder).resolve(),
            serving=serving,
            output=RunOutput(form, progress=progress, answer=cast("Any", taker)),
            deadline=TimeLimit(one.task.max_seconds or settings.limits.max_seconds),
            cancel=self.cancel,
        )

    async def _worktree_for(self, entry: TaskEntry) -> None:
        """A new work tree, or the one that an earlier run has left, with what was in it committed.

        One that was not yet begun to be used may be half made: what it lacks was not deleted by anybody.
        """
        root, folder = Path(self.record.root), Path(entry.worktree)
        async with self._making:
            if entry.kept and await in_background(lambda: is_worktree(folder)):
                left = f"Unfinished work on {entry.name}"
                saved = await in_background(lambda: commit_everything(folder, left))
                if saved:
                    self.say(f"{entry.name}: goes on from what was left, which is committed as {saved[:10]}")
            else:
                await in_background(lambda: self._make_room(entry))
                folder = _free_folder(folder)
                entry.worktree = str(folder)
                ensure_private_folder(folder.parent)
                await in_background(lambda: add_worktree(root, folder, entry.branch, self.record.commit))
        if self.record.subfolder and not (folder / self.record.subfolder).is_dir():
            raise AgentError(f"the folder {self.record.subfolder} is not in the commit that tasks start from")
        entry.state, entry.kept, entry.branch_gone = "running", True, False
        self.record.save()
        self.say(f"{entry.name}: begins on the branch {entry.branch}")

    def _make_room(self, entry: TaskEntry) -> None:
        """So that the branch can be checked out again."""
        root, folder = Path(self.record.root), Path(entry.worktree)
        if not folder.exists():
            remove_worktree(root, folder)
        elif not entry.kept:
            discard_unused_worktree(root, folder)

    async def _put_away(self, entry: TaskEntry) -> None:
        """Removes a work tree in which everything is committed, if its task is done or came to no commit.

        A branch without a commit of its own goes too.
        """
        root, folder = Path(self.record.root), Path(entry.worktree)
        if not await in_background(lambda: is_worktree(folder)):
            return
        state = await inspect(folder, with_fingerprints=False)
        is_unused = state.head == self.record.commit
        if state.problem or state.dirty or not (is_unused or entry.state == "done"):
            return
        async with self._making:
            entry.kept = not await in_background(lambda: remove_worktree(root, folder))
            if is_unused and not entry.kept:
                entry.branch_gone = await in_background(
                    lambda: delete_unused_branch(root, entry.branch, self.record.commit)
                )
        self.record.save()

    def _settle(self, entry: TaskEntry, result: dict[str, Any]) -> None:
        code = result.get("exit_code")
        interrupted = code == int(ExitCode.INTERRUPTED)
        entry.result = result
        entry.state = "done" if code == 0 else "interrupted" if interrupted else "not_done"
        self.record.save()
        why = result.get("detail") or result.get("error") or ""
        self.say(f"{entry.name}: {entry.state.replace('_', ' ')}{f': {why}' if why and code else ''}")


def _free_folder(folder: Path) -> Path:
    """`folder`, or one like it where something that is no work tree is in the way."""
    number, free = 1, folder
    while free.exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free
