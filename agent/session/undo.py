"""Undoing what a session changed, all of it or nothing.

A file is put back only if it still is exactly what the session left, so nobody's later work is lost.
Whatever undo replaces or deletes is kept in a session of its own, which can be undone like any other.
Which one comes next is for `stepping` to say.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.core.errors import AgentError, UsageError
from agent.session.catalogue import find_session, remove_session, session_folders
from agent.session.kept import KeptFiles, contents_of, load_kept, load_point
from agent.session.placing import make_way, prepared, put_back, remove_if_empty, remove_own
from agent.session.states import (
    ABSENT,
    ContentStore,
    FileState,
    KeptFile,
    linked_parent,
    state_below,
)
from agent.session.store import SessionStore, is_active
from agent.session.undo_notes import note_results, take_over_killed

Replace = Callable[[Path, Path], object]
"""Puts the first path in the place of the second one in one step, like `os.replace`."""


class UndoRefusedError(AgentError):
    """Files were changed by somebody else, so nothing was put back. `conflicts` are path and reason."""

    def __init__(self, plan: "UndoPlan", conflicts: Sequence[tuple[str, str]], hint: str) -> None:
        listed = "".join(f"\n  {path}: {reason}" for path, reason in conflicts)
        turn = f"turn {plan.turn} of " if plan.turn else ""
        name = f"{turn}session {plan.session.name}"
        super().__init__(f"{name} cannot be undone, nothing was changed:{listed}", hint)
        self.conflicts = tuple(conflicts)


@dataclass(frozen=True, slots=True)
class UndoStep:
    """Bring `path` (its name in the workspace) from `present` back to `original`."""

    path: str
    present: FileState
    original: FileState
    made_folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What undoing a session takes, or its turns from `turn` on. With conflicts it cannot be done."""

    session: Path
    workspace: Path
    steps: tuple[UndoStep, ...]
    conflicts: tuple[tuple[str, str], ...] = ()
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class UndoResult:
    """`restored` have their old content again, `deleted` had been created by the session.

    `recorded_as` is the session that undoes this undo; empty if there was nothing to do. `turn` is the turn
    that was undone, 0 where it was all of the session.
    """

    session_id: str
    restored: tuple[str, ...]
    deleted: tuple[str, ...]
    recorded_as: str
    turn: int = 0


@dataclass(slots=True)
class _Staged:
    """A step whose new content is ready beside its destination; no file where it deletes."""

    step: UndoStep
    ready: Path | None


@dataclass(slots=True)
class _Progress:
    staged: list[_Staged] = field(default_factory=list)
    done: list[_Staged] = field(default_factory=list)
    made_folders: list[Path] = field(default_factory=list)


def plan_undo(session: Path, workspace: Path) -> UndoPlan:
    """Compares the workspace with what the session left. Changes nothing."""
    workspace = workspace.resolve()
    contents = contents_of(session)
    steps: list[UndoStep] = []
    conflicts: list[tuple[str, str]] = []
    files = load_kept(session)
    for path, kept in files.items():
        try:
            present = state_below(workspace, path)
            reason = moved(workspace, path, files) if present != kept.original else ""
            reason = reason or _conflict(path, kept, present, contents)
        except OSError as error:
            present, reason = FileState("other"), f"cannot be read: {error.strerror or error}"
        if reason:
            conflicts.append((path, reason))
        elif present != kept.original:
            steps.append(UndoStep(path, present, kept.original, kept.made_folders))
    return UndoPlan(session, workspace, tuple(steps), tuple(conflicts))


def undo(
    state_folder: Path,
    workspace: Path,
    session: str,
    *,
    replace: Replace = os.replace,
    own: str = "",
) -> UndoResult:
    """Puts back every file that a session changed, or that an undo did.

    Files get their old bytes and permissions, links their target; created files are deleted, and so are
    the folders that were created for them unless something else is in there. `replace` stands in for
    `os.replace`. `own` is the id of the session that asks, which may still be open.

    Raises:
        UndoRefusedError: a file was changed by somebody else; nothing was changed.
        UsageError: there is no such session, or it is still running.
        AgentError: the disk failed; what had been put back was taken back.
    """
    workspace = workspace.resolve()
    folder = find_session(state_folder, workspace, session)
    require_ended(folder, own)
    plan = plan_undo(folder, workspace)
    if not plan.steps and not plan.conflicts:
        return UndoResult(folder.name, (), (), "")
    return carry_out_all(state_folder, plan, replace, own=own)


def require_ended(folder: Path, own: str) -> None:
    """Raises UsageError: a living process other than the session `own` records this session."""
    if folder.name != own and is_active(folder):
        raise UsageError(f"session {folder.name} is still running", "stop it first")


def carry_out_all(
    state_folder: Path, plan: UndoPlan, replace: Replace = os.replace, *, own: str = ""
) -> UndoResult:
    """The same as `carry_out`, but nothing where there are conflicts.

    Raises:
        UndoRefusedError: there are.
    """
    if plan.conflicts:
        raise _refusal(state_folder, plan, own)
    return carry_out(state_folder, plan, replace, own=own)


def carry_out(
    state_folder: Path, plan: UndoPlan, replace: Replace = os.replace, *, own: str = ""
) -> UndoResult:
    """Takes the steps of a plan, all or none, whatever its conflicts. Raises what `undo` does.

    What an earlier undo of the same session had done when it was killed becomes part of this one.
    """
    name = plan.session.name
    about = {"type": "undo", "of": name} | ({} if plan.turn is None else {"turn": plan.turn})
    with SessionStore.create(state_folder, plan.workspace, task=f"undo of {name}", kind="undo") as record:
        record.append({**about, "reason": "not finished"})
        progress = _Progress()
        kept = KeptFiles(record.folder, plan.workspace)
        try:
            _stage(plan, kept, progress)
            _put_in_place(plan, kept, progress, replace)
            take_over_killed(plan.session, record.folder, kept)
        except BaseException as error:
            clean = _take_back(plan.workspace, kept, progress)
            kept.close()
            record.close()
            if clean:
                remove_session(record.folder)
            if isinstance(error, OSError):
                raise _failure(name, error, clean, record.folder) from error
            raise
        kept.close()
        note_results(plan.session, kept, own)
        deleted = tuple(step.path for step in plan.steps if step.original == ABSENT)
        restored = tuple(step.path for step in plan.steps if step.original != ABSENT)
        record.append({**about, "reason": "done", "restored": restored, "deleted": deleted})
    return UndoResult(name, restored, deleted, record.id, plan.turn or 0)


def _stage(plan: UndoPlan, kept: KeptFiles, progress: _Progress) -> None:
    """Keeps what is there and writes what shall be there under other names, before anything changes."""
    contents = contents_of(plan.session)
    for step in plan.steps:
        # A pipe or a socket has no bytes to be kept.
        has_bytes = step.present.kind == "file"
        destination = plan.workspace / step.path
        present = kept.contents.keep(destination) if has_bytes else state_below(plan.workspace, step.path)
        if present != step.present:
            raise _being_changed(plan, step)
        kept.adopt(step.path, present, kept.missing_folders(step.path), kept.contents)
        if step.original == ABSENT:
            progress.staged.append(_Staged(step, None))
            continue
        beside = _nearest_folder(plan.workspace, step.path)
        ready = prepared(step.original, destination, contents, beside=beside)
        progress.staged.append(_Staged(step, ready))
    # First what is to be gone: a file can be where a folder has to be again, and the other way round.
    progress.staged.sort(key=lambda staged: staged.ready is not None)


def _put_in_place(plan: UndoPlan, kept: KeptFiles, progress: _Progress, replace: Replace) -> None:
    for staged in progress.staged:
        destination = plan.workspace / staged.step.path
        # Seconds may have passed since the plan: the last look is as close to the change as can be.
        if state_below(plan.workspace, staged.step.path) != staged.step.present:
            raise _being_changed(plan, staged.step)
        # Noted first: killed before or after the change, the record of this undo is right either way.
        kept.set_result(staged.step.path, staged.step.original)
        progress.done.append(staged)
        if staged.ready is None:
            destination.unlink()
            for folder in reversed(staged.step.made_folders):
                remove_if_empty(plan.workspace / folder)
        else:
            _make_folders(destination.parent, progress)
            if not make_way(destination):
                raise _hindered(plan, staged.step)
            replace(staged.ready, destination)


def _being_changed(plan: UndoPlan, step: UndoStep) -> UndoRefusedError:
    return UndoRefusedError(plan, [(step.path, "is being changed right now")], "try again")


def _hindered(plan: UndoPlan, step: UndoStep) -> UndoRefusedError:
    reason = "a folder with something in it is in its place now"
    return UndoRefusedError(plan, [(step.path, reason)], "move the folder away and try again")


def _take_back(workspace: Path, kept: KeptFiles, progress: _Progress) -> bool:
    """Restores what is already done after a failure. Whether everything is as it was before."""
    clean = True
    for staged in reversed(progress.done):
        destination = workspace / staged.step.path
        try:
            found = state_below(workspace, staged.step.path)
            if found == staged.step.present:
                continue
            if found != staged.step.original:  # somebody was faster: theirs stays
                clean = False
                continue
            destination.parent.mkdir(parents=True, exist_ok=True)
            put_back(staged.step.present, destination, kept.contents)
        except OSError:
            clean = False
    for staged in progress.staged:
        if staged.ready is not None:
            remove_own(staged.ready)
    for folder in reversed(progress.made_folders):
        remove_if_empty(folder)
    return clean


def _conflict(path: str, kept: KeptFile, present: FileState, contents: ContentStore) -> str:
    """Why a file cannot be put back, or an empty string."""
    if present == kept.original:
        return ""
    if kept.foreign:
        return "somebody else changed it while the session was changing it"
    if kept.result is None:
        return "the session ended before it noted its change"
    if present != kept.result:
        return difference(present, kept.result)
    if kept.original.kind == "other":
        return "it was no regular file"
    if kept.original.kind == "file" and not contents.path_of(kept.original.content).is_file():
        return f"its original is missing from {contents.folder}"
    return ""


def moved(workspace: Path, path: str, files: Mapping[str, KeptFile]) -> str:
    """Why a file cannot be put where it was; empty where it can. A link that undo deletes is no hindrance."""
    link = linked_parent(workspace, path)
    made_by_us = link in files and files[link].original == ABSENT and files[link].result is not None
    return "a folder on the way to it is a link now" if link and not made_by_us else ""


def difference(present: FileState, result: FileState) -> str:
    """What somebody else did to a file that the session left as `result`."""
    if present == ABSENT:
        return "somebody else deleted it since"
    if result == ABSENT:
        return "somebody else created it since"
    if present.kind == result.kind and present.content == result.content:
        return f"somebody else changed its permissions since, from {result.mode:o} to {present.mode:o}"
    return "somebody else changed it since"


def _refusal(state_folder: Path, plan: UndoPlan, own: str) -> UndoRefusedError:
    later = [
        folder.name
        for folder in session_folders(state_folder, plan.workspace)
        if folder.name > plan.session.name and _left_as_is(folder, plan)
    ]
    if later:
        hint = f"a later session changed these files: agent undo {later[0]} comes first"
    else:
        hint = _where_originals_are(
            plan, "/rewind takes back the others; " if plan.session.name == own else ""
        )
    return UndoRefusedError(plan, plan.conflicts, hint)


def _where_originals_are(plan: UndoPlan, others: str) -> str:
    kept, contents = load_kept(plan.session), contents_of(plan.session)
    point = load_point(plan.session, plan.turn) if plan.turn else None
    originals = [
        (path, (point and point.state_of(path, kept[path])) or kept[path].original)
        for path, _ in plan.conflicts
    ]
    lines = [f"{path} was {contents.path_of(was.content)}" for path, was in originals if was.kind == "file"]
    lines += [f"{path} was not there" for path, was in originals if was == ABSENT]
    return "\n  ".join([f"{others}put these right by hand", *lines])


def _left_as_is(folder: Path, plan: UndoPlan) -> bool:
    """Whether a session made one of the conflicting files what it is now."""
    kept = load_kept(folder)
    return any(
        path in kept and kept[path].result == state_below(plan.workspace, path) for path, _ in plan.conflicts
    )


def _failure(name: str, error: OSError, clean: bool, record: Path) -> AgentError:
    message = f"cannot undo session {name}: {error.strerror or error}"
    if error.filename:
        message += f" ({os.fsdecode(error.filename)})"
    if clean:
        return AgentError(message, "nothing was changed")
    return AgentError(f"{message}; some files could not be taken back", f"their content is in {record}")


def _nearest_folder(workspace: Path, key: str) -> Path:
    """The innermost folder on the way to a file that is there: a folder, and no link to one."""
    nearest = workspace
    for parent in reversed(Path(key).parents[:-1]):
        candidate = workspace / parent
        if candidate.is_symlink() or not candidate.is_dir():
            break
        nearest = candidate
    return nearest


def _make_folders(folder: Path, progress: _Progress) -> None:
    missing = [candidate for candidate in (folder, *folder.parents) if not candidate.is_dir()]
    for candidate in reversed(missing):
        candidate.mkdir(exist_ok=True)
        progress.made_folders.append(candidate)
