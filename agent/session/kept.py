"""The originals of the files that one session changes, kept in `<session folder>/before/`.

The folder holds contents under their sha256 and `index.jsonl`, which only grows. Three kinds of lines:
`keep` (a file before its first change), `result` (the same file after a change of the session) and
`foreign` (somebody else changed it between two changes of the session). The bytes are on disk before
their line is, and the line before the change it precedes, so a kill at any point loses nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.core.errors import AgentError
from agent.session.lines import LineAppender, read_lines
from agent.session.states import ContentStore, FileState, KeptFile, state_from, state_of, state_record

FOLDER_NAME = "before"
INDEX_NAME = "index.jsonl"


class KeptFiles:
    """Reads and extends the originals of the session in `session_folder`, for files in `workspace`.

    Nothing is written before the first `keep`. Paths are given by their name in the resolved workspace.
    """

    def __init__(self, session_folder: Path, workspace: Path) -> None:
        self.workspace = workspace
        self.contents = contents_of(session_folder)
        self.files = load_kept(session_folder)
        self._index: LineAppender | None = None

    def keep(self, key: str) -> FileState:
        """Keeps a file of which nothing is known yet, and returns what it is now.

        Raises:
            AgentError: it could not be kept; the file must not be changed then.
        """
        state = self.contents.keep(self.workspace / key)
        made = self._missing_folders(key)
        self._append({"do": "keep", "path": key, "made": made, **state_record(state)})
        self.files[key] = KeptFile(state, tuple(made))
        return state

    def set_result(self, key: str, state: FileState) -> None:
        """Notes what the session left at `key`.

        Raises:
            AgentError: it could not be noted; undo will not know the file for ours then.
        """
        if self.files[key].result == state:
            return
        self._append({"do": "result", "path": key, **state_record(state)})
        self.files[key].result = state

    def set_foreign(self, key: str) -> None:
        """Keeps what somebody else made of `key` before the session changes it again.

        Raises:
            AgentError: it could not be kept; the file must not be changed then.
        """
        state = self.contents.keep(self.workspace / key)
        self._append({"do": "foreign", "path": key, **state_record(state)})
        self.files[key].foreign = True

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    def present(self, key: str) -> FileState:
        return state_of(self.workspace / key)

    def _append(self, record: Mapping[str, Any]) -> None:
        folder = self.contents.folder
        try:
            if self._index is None:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._index = LineAppender(folder / INDEX_NAME)
            self._index.append(record)
        except OSError as error:
            raise AgentError(
                f"cannot write {folder / INDEX_NAME}: {error.strerror or error}",
                "free some disk space or choose another folder with AGENT_STATE_HOME",
            ) from error

    def _missing_folders(self, key: str) -> list[str]:
        folders = [folder for folder in Path(key).parents if folder != Path()]
        return [folder.as_posix() for folder in reversed(folders) if not (self.workspace / folder).is_dir()]


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


def _apply(files: dict[str, KeptFile], record: Mapping[str, Any]) -> None:
    key, state = str(record["path"]), state_from(record)
    if record["do"] == "keep" and key not in files:
        files[key] = KeptFile(state, tuple(str(folder) for folder in record["made"]))
    elif record["do"] == "result":
        files[key].result = state
    elif record["do"] == "foreign":
        files[key].foreign = True
