"""Undo on a disk that fails, with originals that are damaged, and killed half way."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from agent.core.errors import AgentError
from agent.session.catalogue import session_folders
from agent.session.undo import UndoRefusedError
from tests.session.undo_rig import Run, Snapshot, redo, snapshot, undo

KILLED_UNDO = """
import os, sys
from pathlib import Path
from agent.session.stepping import step_back
left = int(sys.argv[3])
def replace(source, destination):
    global left
    if left == 0:
        os.kill(os.getpid(), 9)
    left -= 1
    os.replace(source, destination)
step_back(Path(sys.argv[1]), Path(sys.argv[2]), replace=replace)
"""


@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_a_disk_that_fails_half_way_leaves_the_tree_as_it_was(
    workspace: Path, state: Path, fails_at: int
) -> None:
    (workspace / "third").write_bytes(b"3")
    run = Run(state, workspace)
    run.write("made/created.py", b"new\n")
    for name in ("src/a.py", "third", "script"):
        run.write(name, b"changed\n")
    run.finish()
    before = snapshot(workspace)
    calls = iter(range(10))

    def replace(source: Path, destination: Path) -> None:
        if next(calls) == fails_at:
            raise OSError(errno.EROFS, "Read-only file system", str(destination))
        source.replace(destination)

    with pytest.raises(AgentError, match="Read-only file system"):
        undo(state, workspace, replace=replace)
    assert snapshot(workspace) == before
    assert [folder.name for folder in session_folders(state, workspace)] == [run.store.id]


def test_a_damaged_original_is_noticed_before_anything_changes(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    run.write("script", b"new")
    run.write("src/a.py", b"new")
    run.finish()
    for kept in (run.store.folder / "before").iterdir():
        if kept.name != "index.jsonl":
            kept.write_bytes(b"rotten")
    before = snapshot(workspace)
    with pytest.raises(AgentError, match="damaged"):
        undo(state, workspace)
    assert snapshot(workspace) == before


def test_a_missing_original_is_named(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    run.write("script", b"new")
    run.finish()
    for kept in (run.store.folder / "before").iterdir():
        if kept.name != "index.jsonl":
            kept.unlink()
    with pytest.raises(UndoRefusedError, match="original is missing"):
        undo(state, workspace)


@pytest.mark.parametrize("replaced", [0, 1, 2])
@pytest.mark.parametrize("finished", [True, False])
def test_an_undo_killed_half_way_is_finished_by_the_next_or_taken_back_by_redo(
    workspace: Path, state: Path, replaced: int, finished: bool
) -> None:
    run = Run(state, workspace)
    before = snapshot(workspace)
    for name in ("src/a.py", "script"):
        run.write(name, b"new\n")
    session = run.finish()
    after = snapshot(workspace)
    command = [sys.executable, "-c", KILLED_UNDO, str(state), str(workspace), str(replaced)]
    assert subprocess.run(command, check=False).returncode in (0, -9)
    if finished and replaced < 2:
        assert undo(state, workspace).session_id == session
    if finished:
        assert visible(workspace) == before
    redo(state, workspace)
    assert visible(workspace) == after
    undo(state, workspace)
    assert visible(workspace) == before


def visible(workspace: Path) -> Snapshot:
    """A killed undo cannot clear away what it had prepared."""
    return {name: what for name, what in snapshot(workspace).items() if ".undo-" not in name}
