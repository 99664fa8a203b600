"""Undo and redo without an id: one step back each time, one step forward again.

What a step is stands in `steps`. Taking one back is all or nothing, as in `undo`.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from agent.core.errors import UsageError
from agent.session.catalogue import summarise
from agent.session.kept import KeptFiles
from agent.session.lines import read_lines
from agent.session.rewind import plan_rewind
from agent.session.steps import Steps, read_steps
from agent.session.store import EVENTS_NAME, is_active, sessions_folder
from agent.session.undo import Replace, UndoResult, carry_out_all, plan_undo, require_ended
from agent.session.undo_notes import note_results


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step back or forward. `task` is what the person had asked for in it, as far as it is known.

    `goes_further` says that there is another one in the same direction.
    """

    result: UndoResult
    task: str
    goes_further: bool

    @property
    def session_id(self) -> str:
        return self.result.session_id

    @property
    def turn(self) -> int:
        return self.result.turn

    @property
    def restored(self) -> tuple[str, ...]:
        return self.result.restored

    @property
    def deleted(self) -> tuple[str, ...]:
        return self.result.deleted


def step_back(
    state_folder: Path, workspace: Path, *, own: str = "", replace: Replace = os.replace
) -> Stepped:
    """Takes back the newest change that is not taken back yet: of the open session `own`, else of any.

    A change whose files are as before it already, put back by hand, counts as taken back from then on.

    Raises:
        UsageError: there is none, or its session or another undo is still running.
        UndoRefusedError: a file was changed by somebody else; nothing was changed.
        AgentError: the disk failed; what had been put back was taken back.
    """
    workspace = workspace.resolve()
    steps = read_steps(state_folder, workspace)
    step = steps.newest(own)
    if step is None:
        raise _nothing_to_undo(steps, workspace, own)
    _settle_killed(steps, workspace, own)
    folder = sessions_folder(state_folder, workspace) / step.session
    require_ended(folder, own)
    plan = plan_rewind(folder, workspace, step.turn) if step.turn else plan_undo(folder, workspace)
    result = carry_out_all(state_folder, plan, replace, own=own)
    further = any(own in ("", other.session) for other in steps.in_force - {step})
    return Stepped(result, task_of(folder, step.turn), further)


def step_forward(
    state_folder: Path, workspace: Path, *, own: str = "", replace: Replace = os.replace
) -> Stepped:
    """Brings back what undo took back last. Raises what `step_back` does."""
    workspace = workspace.resolve()
    steps = read_steps(state_folder, workspace)
    record = steps.to_bring_back(own)
    if record is None:
        where = "this session" if own else str(workspace)
        raise UsageError(f"nothing to redo: nothing is undone in {where}")
    later = steps.later_than(record, own)
    if later is not None:
        raise UsageError(
            f"nothing to redo: {words_for(later.session, later.turn)} changed files after the last undo",
            f"to bring back what was undone before that all the same: agent undo {record.folder.name}",
        )
    _settle_killed(steps, workspace, own)
    folder = sessions_folder(state_folder, workspace) / steps.root(record.of)
    require_ended(folder, own)
    plan = plan_undo(record.folder, workspace)
    result = carry_out_all(state_folder, plan, replace, own=own)
    turn = next(iter(record.taken)).turn if len(record.taken) == 1 else 0
    told = UndoResult(folder.name, result.restored, result.deleted, result.recorded_as, turn)
    now = read_steps(state_folder, workspace)
    following = now.to_bring_back(own)
    further = following is not None and now.later_than(following, own) is None
    return Stepped(told, task_of(folder, turn), further)


def _nothing_to_undo(steps: Steps, workspace: Path, own: str) -> UsageError:
    if steps.to_bring_back(own) is not None:
        where = "this session" if own else str(workspace)
        hint = (
            "/redo brings the last one back; `agent undo` in a shell also takes back earlier sessions"
            if own
            else "`agent undo --redo` brings the last one back"
        )
        return UsageError(f"nothing more to undo: all changes of {where} are taken back", hint)
    if own:
        return UsageError("nothing to undo: this session has changed no files")
    return UsageError(
        f"nothing to undo: no session has changed files in {workspace}",
        "run this in the folder that the agent worked in",
    )


def _settle_killed(steps: Steps, workspace: Path, own: str) -> None:
    """Lets sessions know of what an undo had done to their files when it was killed."""
    for record in steps.unfinished():
        if is_active(record.folder):
            raise UsageError("another undo is still running", "try again when it has ended")
        note_results(record.folder.parent / record.of, KeptFiles(record.folder, workspace), own)


def words_for(session: str, turn: int) -> str:
    """What a step is called: a session, or a turn of it."""
    return f"turn {turn} of {session}" if turn else session


def task_of(session: Path, turn: int) -> str:
    """What the person had asked for in a turn; for turn 0 at the beginning of the session."""
    if not turn:
        return summarise(session).task
    count = 0
    try:
        for record in read_lines(session / EVENTS_NAME):
            kind = record.get("type")
            count += kind == "turn_started"
            if count == turn and kind == "user_message" and not record.get("is_note"):
                # A run says it behind the files that it has read beforehand, see `core.briefing`.
                return str(record.get("text", "")).rpartition("\n\nTask: ")[2]
    except OSError:
        return ""
    return ""
