"""Undo gives back exactly what was there, or touches nothing."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.errors import UsageError
from agent.session.catalogue import session_folders
from agent.session.ledger import SessionLedger
from agent.session.store import SessionStore, load
from agent.session.undo import UndoRefusedError, plan_undo
from tests.session.undo_rig import Run, Snapshot, redo, snapshot, undo


def test_everything_is_as_before_after_undo_and_changed_again_after_redo(
    workspace: Path, state: Path
) -> None:
    before = snapshot(workspace)
    run = Run(state, workspace)
    run.write("src/a.py", b"a = 2\n")
    run.write("script", b"", 0o644)
    run.write("new/deep/b.py", b"b\n")
    session = run.finish()
    after = snapshot(workspace)

    result = undo(state, workspace)
    assert snapshot(workspace) == before
    assert (result.session_id, result.restored, result.deleted) == (
        session,
        ("src/a.py", "script"),
        ("new/deep/b.py",),
    )
    redo(state, workspace)
    assert snapshot(workspace) == after
    undo(state, workspace)
    assert snapshot(workspace) == before


TARGET = "target.txt"  # never a link itself, so that links cannot go round in circles
NAMES = (TARGET, "a.txt", "b.txt", "src/c.py", "new/d.py", "new/deep/e.py", "link", "dangling")
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "chmod", "relink"]),
        st.sampled_from(NAMES),
        st.binary(max_size=20),
        st.sampled_from([0o600, 0o644, 0o755, 0o640]),
    ),
    min_size=1,
    max_size=12,
)


def perform(ledger: SessionLedger, workspace: Path, action: tuple[str, str, bytes, int]) -> None:
    kind, name, data, mode = action
    path = workspace / name
    if kind in ("delete", "chmod") and not os.path.lexists(path):
        return
    if (kind == "chmod" and path.is_symlink()) or (kind == "relink" and name == TARGET):
        return
    ledger.before_change(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "write":
        path.write_bytes(data)
    elif kind == "delete":
        path.unlink()
    elif kind == "chmod":
        path.chmod(mode)
    else:
        path.unlink(missing_ok=True)
        path.symlink_to(TARGET)
    ledger.record(path)


@settings(max_examples=25, deadline=None)
@given(ACTIONS, ACTIONS)
def test_any_sequence_of_changes_in_two_sessions_can_be_undone_and_redone(
    first: list[tuple[str, str, bytes, int]], second: list[tuple[str, str, bytes, int]]
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        workspace, state = Path(scratch).resolve() / "work", Path(scratch) / "state"
        (workspace / "src").mkdir(parents=True)
        (workspace / "a.txt").write_bytes(b"original\r\n")
        (workspace / "src" / "c.py").write_bytes(b"")
        (workspace / "src" / "c.py").chmod(0o750)
        (workspace / "link").symlink_to("a.txt")
        (workspace / "dangling").symlink_to("nowhere")
        snapshots, sessions = [snapshot(workspace)], []
        for actions in (first, second):
            with SessionStore.create(state, workspace) as store:
                ledger = SessionLedger(workspace, store.folder)
                for action in actions:
                    perform(ledger, workspace, action)
                ledger.close()
            snapshots.append(snapshot(workspace))
            sessions.append(store.folder)
        original, _, last = snapshots
        recorded = [undo(state, workspace, folder.name).recorded_as for folder in reversed(sessions)]
        assert without_folders(snapshot(workspace)) == without_folders(original)
        for session in reversed([name for name in recorded if name]):
            undo(state, workspace, session)
        assert without_folders(snapshot(workspace)) == without_folders(last)


def without_folders(found: Snapshot) -> Snapshot:
    """An action that only tried to do something may leave an empty folder that nobody has noted."""
    return {name: what for name, what in found.items() if what != ("folder",)}


@pytest.mark.parametrize(
    ("disturb", "reason"),
    [
        (lambda path: path.write_bytes(b"theirs"), "somebody else changed it since"),
        (lambda path: path.unlink(), "somebody else deleted it since"),
        (lambda path: path.chmod(0o777), "somebody else changed its permissions since"),
        (lambda path: (path.unlink(), path.mkdir()), "somebody else deleted it since"),
        (lambda path: (path.unlink(), path.symlink_to("x")), "somebody else changed it since"),
    ],
)
def test_a_file_that_somebody_changed_since_stops_the_whole_undo(
    workspace: Path, state: Path, disturb, reason: str
) -> None:
    run = Run(state, workspace)
    run.write("script", b"new")
    run.write("src/a.py", b"new")
    run.finish()
    disturb(workspace / "src" / "a.py")
    disturbed = snapshot(workspace)
    with pytest.raises(UndoRefusedError) as refusal:
        undo(state, workspace)
    assert snapshot(workspace) == disturbed
    assert [path for path, _ in refusal.value.conflicts] == ["src/a.py"]
    assert reason in str(refusal.value)
    assert refusal.value.exit_code == 1
    (original,) = (line for line in refusal.value.hint.splitlines() if "src/a.py was " in line)
    assert Path(original.split(" was ")[1]).read_bytes() == b"a = 1\r\n\xff"


def test_a_created_file_that_somebody_extended_is_not_deleted(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    run.write("new.py", b"ours\n")
    run.finish()
    (workspace / "new.py").write_bytes(b"ours\nand theirs\n")
    with pytest.raises(UndoRefusedError) as refusal:
        undo(state, workspace)
    assert refusal.value.hint == "put these right by hand\n  new.py was not there"
    assert (workspace / "new.py").read_bytes() == b"ours\nand theirs\n"


def test_a_folder_that_holds_something_of_somebody_else_stays(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    run.write("new/deep/b.py", b"ours\n")
    run.finish()
    (workspace / "new" / "theirs").touch()
    undo(state, workspace)
    assert [path.name for path in (workspace / "new").iterdir()] == ["theirs"]


def test_changes_of_somebody_else_during_the_session_are_not_undone(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    run.write("src/a.py", b"ours 1\n")
    (workspace / "src" / "a.py").write_bytes(b"theirs\n")
    run.write("src/a.py", b"ours 2\n")
    run.finish()
    with pytest.raises(UndoRefusedError, match="while the session was changing it"):
        undo(state, workspace)
    assert (workspace / "src" / "a.py").read_bytes() == b"ours 2\n"


def test_a_file_already_put_back_by_hand_is_left_alone(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    original = (workspace / "src" / "a.py").read_bytes()
    run.write("src/a.py", b"new\n")
    run.finish()
    (workspace / "src" / "a.py").write_bytes(original)
    result = undo(state, workspace, run.store.id)
    assert (result.restored, result.deleted, result.recorded_as) == ((), (), "")
    assert len(session_folders(state, workspace)) == 1


def test_a_run_that_was_killed_before_noting_its_change_is_not_guessed_at(
    workspace: Path, state: Path
) -> None:
    run = Run(state, workspace)
    run.write("script", b"new")
    run.ledger.before_change(workspace / "src" / "a.py")
    (workspace / "src" / "a.py").write_bytes(b"maybe ours")
    run.finish()
    with pytest.raises(UndoRefusedError, match="before it noted its change"):
        undo(state, workspace)


def test_an_older_session_names_the_later_one_that_is_in_its_way(workspace: Path, state: Path) -> None:
    ids = []
    for data in (b"first\n", b"second\n"):
        run = Run(state, workspace)
        run.write("src/a.py", data)
        ids.append(run.finish())
    with pytest.raises(UndoRefusedError) as refusal:
        undo(state, workspace, ids[0])
    assert f"agent undo {ids[1]} comes first" in refusal.value.hint
    undo(state, workspace, ids[1])
    undo(state, workspace, ids[0])
    assert (workspace / "src" / "a.py").read_bytes() == b"a = 1\r\n\xff"


def test_a_running_session_is_not_undone(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    run.write("src/a.py", b"new")
    with pytest.raises(UsageError, match="still running"):
        undo(state, workspace)
    run.finish()


def test_nothing_to_undo_is_said(workspace: Path, state: Path) -> None:
    Run(state, workspace).finish()
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(state, workspace)


def test_undo_does_not_follow_a_folder_that_became_a_link(
    workspace: Path, state: Path, tmp_path: Path
) -> None:
    run = Run(state, workspace)
    run.write("src/a.py", b"new\n")
    run.finish()
    (workspace / "src").rename(tmp_path / "elsewhere")
    (workspace / "src").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UndoRefusedError, match="is a link now"):
        undo(state, workspace)
    assert (tmp_path / "elsewhere" / "a.py").read_bytes() == b"new\n"


@pytest.mark.parametrize("target", ["./a.txt", "kept//a.txt", "kept/", "src/./b/../c"])
def test_the_target_of_a_link_comes_back_as_it_was_spelled(workspace: Path, state: Path, target: str) -> None:
    (workspace / "link").symlink_to(target)
    run = Run(state, workspace)
    run.delete("link")
    run.finish()
    undo(state, workspace)
    assert os.readlink(workspace / "link") == target


def test_the_record_of_an_undo_says_what_it_did(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    run.write("new.py", b"new\n")
    session = run.finish()
    undo(state, workspace)
    header, begun, event = load(session_folders(state, workspace)[0] / "events.jsonl")
    assert begun == {"type": "undo", "of": session, "reason": "not finished"}
    assert (header["kind"], header["task"]) == ("undo", f"undo of {session}")
    assert event == {"type": "undo", "of": session, "reason": "done", "restored": [], "deleted": ["new.py"]}


def test_planning_changes_nothing(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    run.write("new.py", b"new\n")
    run.finish()
    before = snapshot(workspace)
    plan = plan_undo(run.store.folder, workspace)
    assert [step.path for step in plan.steps] == ["new.py"]
    assert snapshot(workspace) == before


def test_a_pipe_that_stood_in_the_place_of_a_file_is_not_made_again(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    path = workspace / "src" / "a.py"
    run.ledger.before_change(path)
    path.unlink()
    os.mkfifo(path)
    run.ledger.settle(path)
    session = run.finish()
    undo(state, workspace, session)
    with pytest.raises(UndoRefusedError, match=r"src/a\.py: it was no regular file"):
        redo(state, workspace)
