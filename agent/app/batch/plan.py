"""From a command line to a batch: what can be wrong with it is said before anything is made."""

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from agent.app.batch.record import BatchRecord, TaskEntry, known_ids, new_id
from agent.app.run.headless import task_with_settings
from agent.app.run.request import RunRequest, resolve_directory
from agent.core.errors import UsageError
from agent.core.private_folder import make_private_folder
from agent.repo.git import inspect, require_ready
from agent.repo.worktrees import is_branch, require_branch_name
from agent.resources import data_folder

BRANCH_FOLDERS = ("agent", "agent-batch")
_LONGEST_NAME = 40
_FLAGS = ("profile", "check", "allow", "deny", "max_steps", "max_tool_calls", "max_seconds")


async def plan_batch(request: RunRequest, sources: Sequence[str], jobs: int) -> tuple[BatchRecord, list[str]]:
    """A new batch, written down, and lines for the person about it.

    Args:
        request: the flags that hold for each task; `branch` is the folder of their branches.

    Raises:
        UsageError: a task or flag is wrong, or the repository cannot be worked on in work trees.
    """
    directory = resolve_directory(request)
    state = await inspect(directory, with_fingerprints=False)
    if state.problem:
        hint = "each task of a batch gets a work tree of its own; run the tasks one by one elsewhere"
        raise UsageError(f"a batch needs a git repository: {state.problem}", hint)
    if state.head is None:
        raise UsageError(f"{state.root} has no commit yet, so there is nothing to start from", "commit first")
    await require_ready(directory, commit=True)
    paths = _distinct(sources)
    for path in paths:
        task_with_settings(replace(request, task=str(path), branch=None), directory)
    batch_id = new_id(datetime.now(UTC), known_ids())
    names = unique_names([path.stem for path in paths])
    branches = _branches(state.root, request.branch, batch_id, names)
    record = BatchRecord(
        id=batch_id,
        root=str(state.root),
        subfolder=os.path.relpath(directory, state.root.resolve()).removeprefix("."),
        commit=state.head,
        flags={name: value for name, value in asdict(request).items() if name in _FLAGS},
        jobs=jobs,
    )
    record.tasks += [
        TaskEntry(
            name=name,
            source=str(path),
            file=str(record.folder / "tasks" / f"{name}.md"),
            branch=branch,
            worktree=str(data_folder() / "worktrees" / batch_id / name),
        )
        for name, branch, path in zip(names, branches, paths, strict=True)
    ]
    _keep_copies(record)
    notes = []
    if state.dirty:
        changes = f"{len(state.dirty)} uncommitted change{'' if len(state.dirty) == 1 else 's'}"
        notes.append(f"{changes} in {state.root} are no part of it: each task starts from {state.head[:10]}")
    return record, notes


def unique_names(stems: Sequence[str]) -> list[str]:
    """Names that can be folders and parts of branches, no two alike on a disk that ignores case."""
    names: list[str] = []
    for stem in stems:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-_")[:_LONGEST_NAME].strip("-_") or "task"
        name, number = plain, 1
        while name.lower() in {other.lower() for other in names}:
            number += 1
            name = f"{plain}-{number}"
        names.append(name)
    return names


def _distinct(sources: Sequence[str]) -> list[Path]:
    seen: dict[Path, str] = {}
    for source in sources:
        if source == "-":
            raise UsageError("a batch reads no task from standard input", "name files, or run - by itself")
        path = Path(source).resolve()
        if path in seen:
            raise UsageError(f"the task {source} is named twice", "name each task once")
        seen[path] = source
    return list(seen)


def _branches(root: Path, folder: str | None, batch_id: str, names: Sequence[str]) -> list[str]:
    if folder is not None:
        branches = [f"{folder}/{name}" for name in names]
    else:
        # A branch that is called like the folder leaves no room for the folder.
        own = next((one for one in BRANCH_FOLDERS if not is_branch(root, one)), batch_id)
        branches = [f"{own}/{name}-{batch_id.rpartition('-')[2]}" for name in names]
    for branch in branches:
        require_branch_name(root, branch)
    return branches


def _keep_copies(record: BatchRecord) -> None:
    try:
        make_private_folder(record.folder / "tasks")
        for entry in record.tasks:
            Path(entry.file).write_bytes(Path(entry.source).read_bytes())
    except OSError as error:
        raise UsageError(f"cannot keep the tasks in {record.folder}: {error.strerror or error}") from error
    record.save()
