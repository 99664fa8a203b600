"""A session whose commands change files, and a repository with work of every kind in it."""

import os
import subprocess
from pathlib import Path

import pytest

from agent.app.files.commanded import CommandWatch
from agent.app.files.killed_command import recover_held
from agent.core.errors import AgentError
from agent.session.held import USUAL_BOUNDS, Bounds
from agent.session.ledger import SessionLedger
from agent.session.store import SessionStore
from agent.session.undo import undo
from tests.session.undo_rig import snapshot

ALONE = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


class Session:
    """A session whose commands run in the workspace as the shell tool would have them run."""

    def __init__(self, state: Path, workspace: Path, bounds: Bounds = USUAL_BOUNDS) -> None:
        self.state, self.workspace = state, workspace
        self.told: list[str] = []
        self.store = SessionStore.create(state, workspace)
        self.ledger = SessionLedger(workspace, self.store.folder)
        self.watch = CommandWatch(
            self.ledger, self.store.folder, excluded=(state,), report=self.told.append, bounds=bounds
        )

    def run(self, command: str) -> None:
        self.watch.begin()
        with self.ledger.own_changes():
            shell(self.workspace, command)
        self.watch.end()

    def finish(self) -> None:
        self.ledger.close()
        self.store.close()

    def undo(self) -> None:
        self.finish()
        undo(self.state, self.workspace, self.store.id)


def kept_after_a_kill(session: Session, command: str) -> list[bytes]:
    """What files were before the command, at the places that a refused undo names. The session is killed."""
    session.watch.begin()
    shell(session.workspace, command)
    session.finish()  # what a kill does to the files of the session: nothing
    recover_held(session.store.folder, session.workspace)
    with pytest.raises(AgentError) as refused:
        undo(session.state, session.workspace, session.store.id)
    lines = refused.value.hint.split("\n")
    return sorted(Path(line.split(" was ")[1]).read_bytes() for line in lines if " was " in line)


def shell(folder: Path, command: str) -> None:
    subprocess.run(["bash", "-ec", command], cwd=folder, env=ALONE, check=True, capture_output=True)


def without_git(folder: Path) -> dict[str, tuple]:
    return {name: what for name, what in snapshot(folder).items() if not name.startswith(".git/")}


def repository(folder: Path) -> Path:
    """A repository in which a person has work of every kind."""
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "clean.txt").write_bytes(b"clean\n")
    (folder / "src" / "deep" / "a.py").write_bytes(b"a\r\nb\n")
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "private.txt").write_bytes(b"mine\n")
    (folder / "private.txt").chmod(0o600)
    (folder / "staged.txt").write_bytes(b"1\n")
    (folder / "dirty.txt").write_bytes(b"1\n")
    (folder / "gone.txt").write_bytes(b"1\n")
    (folder / ".gitignore").write_bytes(b"*.log\nbuild/\n")
    (folder / "link").symlink_to("clean.txt")
    (folder / "odd \n näme \udcff").write_bytes(b"odd\n")
    shell(folder, "git init -q && git add -A && git commit -qm one")
    (folder / "staged.txt").write_bytes(b"2\n")
    shell(folder, "git add staged.txt")
    (folder / "staged.txt").write_bytes(b"3\n")
    (folder / "dirty.txt").write_bytes(b"dirty\0\xff")
    (folder / "gone.txt").unlink()
    (folder / "new.txt").write_bytes(b"untracked")
    (folder / "kept.log").write_bytes(b"ignored")
    return folder
