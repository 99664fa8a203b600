"""Going back to what the files were before a turn of a session.

Unlike `undo` this leaves alone what somebody else has changed since, and does the rest: a person goes back in
a conversation, and their own later work is no part of that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agent.session.kept import TurnPoint, contents_of, load_kept, load_point
from agent.session.states import ContentStore, FileState, KeptFile, state_below
from agent.session.undo import UndoPlan, UndoStep, carry_out, difference, moved


@dataclass(frozen=True, slots=True)
class RewoundFiles:
    """`left` are paths with the reason why they stay. `recorded_as` is the session that undoes this."""

    restored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    recorded_as: str = ""


def plan_rewind(session: Path, workspace: Path, turn: int, changed: Iterable[str] = ()) -> UndoPlan:
    """What it takes to have the files of before turn `turn` again; what cannot be done is a conflict.

    Args:
        changed: files that the session is known to have changed from that turn on. Those of which it kept
            nothing, as in a copy of another session, become conflicts.
    """
    workspace = workspace.resolve()
    contents, point, files = contents_of(session), load_point(session, turn), load_kept(session)
    steps: list[UndoStep] = []
    conflicts = [(path, "what it was is not kept in this session") for path in changed if path not in files]
    for path, kept in files.items():
        if path not in point.changed and kept.result is not None:
            continue
        wanted = point.state_of(path, kept)
        try:
            present = state_below(workspace, path)
            reason = (
                moved(workspace, path, files)
                or _conflict(path, kept, present, wanted, point)
                or _hindrance(wanted, contents)
            )
        except OSError as error:
            present, reason = FileState("other"), f"cannot be read: {error.strerror or error}"
        if wanted is None or (present != wanted and reason):
            conflicts.append((path, reason))
        elif present != wanted:
            steps.append(UndoStep(path, present, wanted, kept.made_folders))
    return UndoPlan(session, workspace, tuple(steps), tuple(conflicts), turn)


def rewind_files(
    state_folder: Path, workspace: Path, session: Path, turn: int, changed: Iterable[str] = ()
) -> RewoundFiles:
    """Puts back what the session, which is open, changed from turn `turn` on. See `plan_rewind`.

    Raises:
        UndoRefusedError: a file is being changed right now; nothing was changed.
        AgentError: the disk failed; what had been put back was taken back.
    """
    plan = plan_rewind(session, workspace, turn, changed)
    if not plan.steps:
        return RewoundFiles(left=plan.conflicts)
    result = carry_out(state_folder, plan, own=session.name)
    return RewoundFiles(result.restored, result.deleted, plan.conflicts, result.recorded_as)


def _conflict(
    path: str, kept: KeptFile, present: FileState, wanted: FileState | None, point: TurnPoint
) -> str:
    """What somebody else did to a file since that turn, or why nobody knows; else an empty string."""
    if wanted is None:
        return "what it was before that turn was not kept"
    if kept.result is None:
        return "the session ended before it noted its change"
    if present != kept.result:
        return difference(present, kept.result)
    if any(key == path and state != wanted for key, state in point.foreign):
        return "somebody else changed it between two changes of the session"
    return ""


def _hindrance(wanted: FileState | None, contents: ContentStore) -> str:
    if wanted is not None and wanted.kind == "other":
        return "it was no regular file"
    if wanted is not None and wanted.kind == "file" and not contents.path_of(wanted.content).is_file():
        return f"what it was is missing from {contents.folder}"
    return ""
