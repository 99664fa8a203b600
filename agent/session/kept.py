"""The originals of the files that one session changes, kept in `<session folder>/before/`.

The folder holds contents under their sha256 and `index.jsonl`, which only grows. Four kinds of lines:
`keep` (a file before its first change), `result` (the same file after a change of the session),
`foreign` (somebody else changed it between two changes of the session) and `turn` (what the files kept so
far are when a turn begins). The bytes are written before their line is, and the line before the change it
precedes, so a kill at any point loses nothing.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.core.errors import AgentError
from agent.core.private_folder import make_private_folder
from agent.session.lines import LineAppender, read_lines
from agent.session.states import (
    ABSENT,
    ContentStore,
    FileState,
    KeptFile,
    linked_parent,
    state_below,
    state_from,
    state_record,
)

FOLDER_NAME = "before"
INDEX_NAME = "index.jsonl"


Moment = Callable[[], Mapping[str, Any]]
"""Gives what a line says about when a change was: `after` is the newest session then, `at` the time in
seconds since 1970."""


class KeptFiles:
    """Reads and extends the originals of the session in `session_folder`, for files in `workspace`.

    Nothing is written before the first `keep`. Paths are given by their name in the resolved workspace.
    `moment` is asked once a turn, at its first change.
    """

    def __init__(self, session_folder: Path, workspace: Path, moment: Moment | None = None) -> None:
        self.workspace = workspace
        self._moment = moment
        self._root = os.fspath(workspace)
        self.contents = contents_of(session_folder)
        self.files = load_kept(session_folder)
        self._index: LineAppender | None = None
        self._turn = last_turn(session_folder)
        self._is_placed = False

    def keep(self, key: str) -> FileState:
        """Keeps a file of which nothing is known yet, and returns what it is now.

        Raises:
            AgentError: it could not be kept; the file must not be changed then.
        """
        state = self.contents.keep(f"{self._root}/{key}")
        made = [] if state != ABSENT else self.missing_folders(key)
        record = {"do": "keep", "path": key, "turn": self._turn, "made": made, **state_record(state)}
        self._append({**record, **self._place()})
        self.files[key] = KeptFile(state, tuple(made))
        return state

    def adopt(self, key: str, original: FileState, made: Sequence[str], source: ContentStore) -> None:
        """Notes what a file was before a command changed it, of which nothing was known.

        Args:
            made: folders that the command made for it, outermost first.
            source: has the bytes of the original.

        Raises:
            AgentError: it could not be kept.
        """
        self._take_over(original, source)
        record = {"do": "keep", "path": key, "turn": self._turn, "made": list(made)}
        self._append({**record, **state_record(original), **self._place()})
        self.files[key] = KeptFile(original, tuple(made))

    def adopt_foreign(self, key: str, state: FileState, source: ContentStore) -> None:
        """Notes what somebody else had made of a kept file before a command changed it. See `adopt`."""
        self._take_over(state, source)
        self._append({"do": "foreign", "path": key, "turn": self._turn, **state_record(state)})
        self.files[key].foreign = True

    def _take_over(self, state: FileState, source: ContentStore) -> None:
        if state.kind != "file":
            return
        try:
            self.contents.take_over(state.content, source)
        except OSError as error:
            raise AgentError(f"cannot keep a file in {self.contents.folder}: {error.strerror}") from error

    def set_result(self, key: str, state: FileState, *, undoing: bool = False) -> None:
        """Notes what the session left at `key`. `undoing` says that this is no change of a turn.

        Raises:
            AgentError: it could not be noted; undo will not know the file for ours then.
        """
        if self.files[key].result == state:
            return
        record = {"do": "result", "path": key, "turn": self._turn, **state_record(state)}
        self._append({**record, **({"undoing": True} if undoing else self._place())})
        self.files[key].result = state

    def _place(self) -> Mapping[str, Any]:
        """Where in the order of all sessions the changes of this turn are, once a turn."""
        if self._moment is None or self._is_placed:
            return {}
        self._is_placed = True
        return self._moment()

    def set_foreign(self, key: str) -> None:
        """Keeps what somebody else made of `key` before the session changes it again.

        Raises:
            AgentError: it could not be kept; the file must not be changed then.
        """
        state = self.contents.keep(self.workspace / key)
        self._append({"do": "foreign", "path": key, "turn": self._turn, **state_record(state)})
        self.files[key].foreign = True

    def begin_turn(self, number: int) -> None:
        """Keeps what the files kept so far are now, for going back to before turn `number`.

        Raises:
            AgentError: it could not be kept.
        """
        self._turn = number
        self._is_placed = False
        if not self.files:
            return
        states = {key: state_record(self._kept_now(key)) for key in self.files}
        self._append({"do": "turn", "turn": number, "files": states})

    def _kept_now(self, key: str) -> FileState:
        try:
            state = self.present(key)
        except OSError:
            return FileState("other")
        if state.kind != "file" or self.contents.path_of(state.content).is_file():
            return state
        return self.contents.keep(self.workspace / key)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    def present(self, key: str) -> FileState:
        return state_below(self.workspace, key)

    def _append(self, record: Mapping[str, Any]) -> None:
        folder = self.contents.folder
        try:
            if self._index is None:
                make_private_folder(folder)
                self._index = LineAppender(folder / INDEX_NAME)
            self._index.append(record)
        except OSError as error:
            raise AgentError(
                f"cannot write {folder / INDEX_NAME}: {error.strerror or error}",
                "free some disk space or choose another folder with AGENT_STATE_HOME",
            ) from error

    def missing_folders(self, key: str) -> list[str]:
        """The folders on the way to a file that are not there, outermost first. A link to one is none."""
        folders = [folder.as_posix() for folder in reversed(Path(key).parents) if folder != Path()]
        link = linked_parent(self.workspace, key)
        there = folders.index(link) if link else len(folders)
        return [
            folder
            for number, folder in enumerate(folders)
            if number >= there or not (self.workspace / folder).is_dir()
        ]


def contents_of(session_folder: Path) -> ContentStore:
    """The kept bytes of a session."""
    return ContentStore(session_folder / FOLDER_NAME)


def load_kept(session_folder: Path) -> dict[str, KeptFile]:
    """The files that a session changed, by their name in the workspace, in order of first change.

    Lines that are torn or not understood are passed over. Empty where the session changed nothing.
    """
    files: dict[str, KeptFile] = {}
    index = session_folder / FOLDER_NAME / INDEX_NAME
    if not index.is_file():
        return files
    for record in read_lines(index):
        try:
            _apply(files, record)
        except (KeyError, TypeError, ValueError):
            continue
    return files


@dataclass(slots=True)
class TurnPoint:
    """The moment before a turn: what was kept then, and what somebody else did to kept files since.

    `kept_in` is the turn in which the session first changed a file, `changed` are the files that it has
    changed since. A session that nobody watched counts no turns (0): all that it changed came after.
    """

    turn: int
    changed: set[str] = field(default_factory=set)
    states: dict[str, FileState] = field(default_factory=dict)
    kept_in: dict[str, int] = field(default_factory=dict)
    foreign: list[tuple[str, FileState]] = field(default_factory=list)

    def state_of(self, key: str, file: KeptFile) -> FileState | None:
        """What the file was at that moment, None where that was not kept."""
        if key in self.states:
            return self.states[key]
        kept_in = self.kept_in.get(key, 0)
        return file.original if kept_in >= self.turn or not kept_in else None


def last_turn(session_folder: Path) -> int:
    """The number of the last turn that a session with changed files began; 0 without one."""
    index = session_folder / FOLDER_NAME / INDEX_NAME
    turns = [record.get("turn") for record in (read_lines(index) if index.is_file() else ())]
    return max((turn for turn in turns if isinstance(turn, int)), default=0)


def load_point(session_folder: Path, turn: int) -> TurnPoint:
    """What is known of the moment before a turn. Lines that are not understood are passed over."""
    point = TurnPoint(turn)
    index = session_folder / FOLDER_NAME / INDEX_NAME
    for record in read_lines(index) if index.is_file() else ():
        try:
            _note(point, record)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return point


def _note(point: TurnPoint, record: Mapping[str, Any]) -> None:
    turn, do = int(record.get("turn", 0)), record["do"]
    if do == "turn" and turn == point.turn:
        point.states = {key: state_from(state) for key, state in record["files"].items()}
    elif do == "result" and (turn >= point.turn or not turn):
        point.changed.add(str(record["path"]))
    elif do == "keep":
        point.kept_in.setdefault(str(record["path"]), turn)
    elif do == "foreign" and turn >= point.turn:
        point.foreign.append((str(record["path"]), state_from(record)))


def _apply(files: dict[str, KeptFile], record: Mapping[str, Any]) -> None:
    key, state = str(record["path"]), state_from(record)
    if record["do"] == "keep" and key not in files:
        files[key] = KeptFile(state, tuple(str(folder) for folder in record["made"]))
    elif record["do"] == "result":
        files[key].result = state
    elif record["do"] == "foreign":
        files[key].foreign = True
