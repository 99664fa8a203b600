"""A session that changes files, and what is in a folder."""

import os
import stat
from pathlib import Path

from agent.session import stepping
from agent.session.ledger import SessionLedger
from agent.session.store import SessionStore
from agent.session.undo import Replace, UndoResult
from agent.session.undo import undo as undo_session

Snapshot = dict[str, tuple]


class Run:
    """A session with changes, as the tools would make them."""

    def __init__(self, state: Path, workspace: Path, task: str = "") -> None:
        self.workspace = workspace
        self.store = SessionStore.create(state, workspace, task=task)
        self.ledger = SessionLedger(workspace, self.store.folder)

    def write(self, name: str, data: bytes, mode: int | None = None) -> None:
        path = self.workspace / name
        self.ledger.before_change(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if mode is not None:
            path.chmod(mode)
        self.ledger.record(path)

    def delete(self, name: str) -> None:
        self.ledger.before_change(self.workspace / name)
        (self.workspace / name).unlink()
        self.ledger.record(self.workspace / name)

    def finish(self) -> str:
        self.ledger.close()
        self.store.close()
        return self.store.id


def undo(
    state: Path, workspace: Path, session: str = "", *, replace: Replace = os.replace, own: str = ""
) -> UndoResult:
    """What `agent undo` does, with an id or without one."""
    if session:
        return undo_session(state, workspace, session, replace=replace, own=own)
    return stepping.step_back(state, workspace, replace=replace, own=own).result


def redo(state: Path, workspace: Path) -> UndoResult:
    return stepping.step_forward(state, workspace).result


def snapshot(folder: Path) -> Snapshot:
    found: Snapshot = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("folder",)
        else:
            found[name] = ("file", path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    return found
