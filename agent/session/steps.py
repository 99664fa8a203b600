"""What undo takes back at once, and what redo brings back: the changes of a workspace in order.

A step is a turn that changed files, or a run that counts no turns (turn 0). The index of each session says
which there were, the records of undo which of them are taken back. Nothing here changes a file.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from agent.session.catalogue import session_folders
from agent.session.kept import FOLDER_NAME, INDEX_NAME
from agent.session.lines import read_lines
from agent.session.states import FileState, state_from
from agent.session.store import EVENTS_NAME

Place = tuple[str, int, float, str, int]
"""Sorts what happened in a workspace: the newest session then, undo before changes, time, session, turn."""


@dataclass(frozen=True, slots=True)
class Step:
    """Changes that are taken back at once. `turn` is 0 for a run that counts no turns."""

    session: str
    turn: int


@dataclass(slots=True)
class UndoRecord:
    """A session that holds what undo replaced. `of` is the session or the record that was undone.

    `turn` is the turn before which it went back, None where all of a session was undone. `is_done` is false
    where undo was killed. `taken` are the steps that it took back, `given` those that it brought back.
    """

    folder: Path
    of: str
    turn: int | None
    is_done: bool
    taken: set[Step] = field(default_factory=set)
    given: set[Step] = field(default_factory=set)


class Steps:
    """The steps of a workspace: `in_force` are those that are not taken back. `records` are oldest first."""

    def __init__(self) -> None:
        self.in_force: set[Step] = set()
        self.records: dict[str, UndoRecord] = {}
        self._places: dict[Step, Place] = {}

    def newest(self, session: str = "") -> Step | None:
        """The step that undo takes back next, of one session or of all."""
        of_it = (step for step in self.in_force if session in ("", step.session))
        return max(of_it, key=self._places.__getitem__, default=None)

    def to_bring_back(self, session: str = "") -> UndoRecord | None:
        """The undo that redo takes back next, of one session or of all."""
        brought_back = {record.of for record in self.records.values() if record.is_done}
        for record in reversed(self.records.values()):
            is_open = record.taken and record.folder.name not in brought_back
            if is_open and session in ("", self.root(record.of)) and not self._was_finished(record):
                return record
        return None

    def later_than(self, record: UndoRecord, session: str = "") -> Step | None:
        """A change that was made after an undo: bringing that back would mix the two."""
        newest = self.newest(session)
        return newest if newest and self._places[newest] > (record.folder.name, 0) else None

    def root(self, name: str) -> str:
        """The session that an undo, or the undo of one, is about."""
        while name in self.records:
            name = self.records[name].of
        return name

    def add(self, step: Step, place: Place) -> None:
        self.in_force.add(step)
        self._places[step] = place

    def count(self, record: UndoRecord) -> None:
        """Takes an undo into account; what one that was killed took back or brought back is in force too."""
        undone = self.records.get(record.of)
        if undone is None:
            record.taken = {
                step
                for step in self.in_force
                if step.session == record.of and _is_from(step.turn, record.turn)
            }
        else:
            record.taken, record.given = undone.given, undone.taken
        self.in_force |= record.given
        if record.is_done:
            self.in_force -= record.taken
            self._replace_half_redone(record)

    def _replace_half_redone(self, later: UndoRecord) -> None:
        """An undo whose redo was killed is part of the next undo of the same step, see `undo_notes`."""
        for record in self.records.values():
            is_same = record is not later and record.of == later.of and record.taken == later.taken
            if is_same and is_half_redone(record, self.records.values()):
                record.taken = set()

    def unfinished(self) -> list[UndoRecord]:
        """Those that were killed, or are at it now, and that no later one has finished."""
        return [one for one in self.records.values() if not one.is_done and not self._was_finished(one)]

    def _was_finished(self, record: UndoRecord) -> bool:
        later = (one for one in self.records.values() if one.folder.name > record.folder.name)
        return not record.is_done and any(one.of == record.of and one.is_done for one in later)


def is_half_redone(record: UndoRecord, records: Iterable[UndoRecord]) -> bool:
    """Whether a redo of this undo was killed, and none has come to its end."""
    ends = [one.is_done for one in records if one.of == record.folder.name]
    return bool(ends) and not any(ends)


def _is_from(turn: int, first: int | None) -> bool:
    """Whether going back to before turn `first` takes a turn back. A run without turns is the first."""
    return first is None or (turn or 1) >= first


def read_steps(state_folder: Path, workspace: Path) -> Steps:
    """Reads what there is of a workspace. Lines that are not understood count for nothing."""
    steps = Steps()
    happened: list[tuple[Place, Step | UndoRecord]] = []
    for folder in reversed(session_folders(state_folder, workspace)):
        record = undo_record(folder)
        if record is None:
            happened += steps_of(folder)
        else:
            steps.records[folder.name] = record
            happened.append(((folder.name, 0, 0.0, "", 0), record))
    for place, what in sorted(happened, key=lambda one: one[0]):
        if isinstance(what, Step):
            steps.add(what, place)
        else:
            steps.count(what)
    return steps


def undo_record(folder: Path) -> UndoRecord | None:
    """The record of an undo, None for another session."""
    try:
        lines = read_lines(folder / EVENTS_NAME)
        header = next(lines, {})
        if header.get("kind") != "undo":
            return None
        found = [line for line in islice(lines, 2) if line.get("type") == "undo"]
    except OSError:
        return None
    task = str(header.get("task", ""))
    said = found[-1] if found else {}
    turn = said.get("turn")
    return UndoRecord(
        folder,
        # One that was killed before its second line, and those of earlier versions, say it in words only.
        of=str(said.get("of") or task.rpartition(" ")[2]),
        turn=turn if isinstance(turn, int) else None,
        is_done=said.get("reason") == "done",
    )


def steps_of(folder: Path) -> Iterator[tuple[Place, Step]]:
    """The turns of a session after which files were not what they were before, each with its place."""
    index = folder / FOLDER_NAME / INDEX_NAME
    turns: dict[tuple[Place, int], _Changes] = {}
    now: dict[str, FileState] = {}
    after, at = folder.name, 0.0
    for record in read_lines(index) if index.is_file() else ():
        try:
            do, turn = record["do"], int(record.get("turn", 0))
            if do not in ("keep", "result"):
                continue
            path, state = str(record["path"]), state_from(record)
            after, at = max(after, str(record.get("after", ""))), float(record.get("at", at))
        except (KeyError, TypeError, ValueError):
            continue
        if not record.get("undoing"):
            changes = turns.setdefault(((after, 1, at, folder.name, turn), turn), _Changes())
            changes.note(path, now.get(path, state), None if do == "keep" else state)
        now[path] = state
    yield from ((place, Step(folder.name, turn)) for (place, turn), one in turns.items() if one.are_some)


@dataclass(slots=True)
class _Changes:
    """What files were before the changes of a turn and after them, None where the latter was not noted."""

    before: dict[str, FileState] = field(default_factory=dict)
    since: dict[str, FileState | None] = field(default_factory=dict)

    def note(self, path: str, before: FileState, since: FileState | None) -> None:
        self.before.setdefault(path, before)
        self.since[path] = since

    @property
    def are_some(self) -> bool:
        return any(self.since[path] != before for path, before in self.before.items())
