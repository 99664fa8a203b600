"""Undo goes one step further back each time, redo one step forward again."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.session import stepping
from agent.session.ledger import SessionLedger
from agent.session.rewind import rewind_files
from agent.session.store import SessionStore
from agent.session.undo import UndoRefusedError
from tests.session.undo_rig import Run, redo, snapshot, undo

ORIGINAL = b"a = 1\r\n\xff"


@pytest.fixture
def file(workspace: Path) -> Path:
    return workspace / "src" / "a.py"


def did(state: Path, workspace: Path, *texts: bytes, task: str = "") -> str:
    """A session with a turn for each text, or a run without turns where there is only one."""
    run = Run(state, workspace, task)
    for number, text in enumerate(texts, 1):
        if len(texts) > 1:
            run.ledger.begin_turn(number)
        run.write("src/a.py", text)
    return run.finish()


def go_on(state: Path, session: str, workspace: Path, turn: int, text: bytes) -> None:
    (folder,) = state.glob(f"sessions/*/{session}")
    with SessionStore.reopen(folder):
        ledger = SessionLedger(workspace, folder)
        ledger.begin_turn(turn)
        ledger.before_change(workspace / "src" / "a.py")
        (workspace / "src" / "a.py").write_bytes(text)
        ledger.record(workspace / "src" / "a.py")
        ledger.close()


def refused(step) -> str:
    with pytest.raises(UsageError) as refusal:
        step()
    return str(refusal.value)


def test_each_undo_takes_back_the_run_or_turn_before_and_each_redo_the_next(
    workspace: Path, state: Path, file: Path
) -> None:
    first = did(state, workspace, b"1")
    talk = did(state, workspace, b"2", b"3")
    last = did(state, workspace, b"4")
    back = [(undo(state, workspace), file.read_bytes()) for _ in range(4)]
    assert [(done.session_id, done.turn, text) for done, text in back] == [
        (last, 0, b"3"),
        (talk, 2, b"2"),
        (talk, 1, b"1"),
        (first, 0, ORIGINAL),
    ]
    assert "nothing more to undo" in refused(lambda: undo(state, workspace))
    assert [(redo(state, workspace).turn, file.read_bytes()) for _ in range(4)] == [
        (0, b"1"),
        (1, b"2"),
        (2, b"3"),
        (0, b"4"),
    ]
    assert "nothing to redo" in refused(lambda: redo(state, workspace))
    assert undo(state, workspace).session_id == last


def test_a_step_says_what_was_asked_for_and_whether_there_is_another(workspace: Path, state: Path) -> None:
    did(state, workspace, b"1", task="first")
    did(state, workspace, b"2", task="second")
    one, two = (stepping.step_back(state, workspace) for _ in range(2))
    assert [(step.task, step.goes_further) for step in (one, two)] == [("second", True), ("first", False)]
    one, two = (stepping.step_forward(state, workspace) for _ in range(2))
    assert [(step.task, step.goes_further) for step in (one, two)] == [("first", True), ("second", False)]


def test_what_a_person_changed_between_two_undos_stays(workspace: Path, state: Path, file: Path) -> None:
    did(state, workspace, b"1")
    did(state, workspace, b"2")
    undo(state, workspace)
    file.write_bytes(b"mine")
    before = snapshot(workspace)
    for step in (undo, redo):
        with pytest.raises(UndoRefusedError, match="somebody else changed it since"):
            step(state, workspace)
        assert snapshot(workspace) == before


def test_a_turn_that_cannot_be_taken_back_says_what_its_file_was_before_it(
    workspace: Path, state: Path, file: Path
) -> None:
    session = did(state, workspace, b"1", b"2")
    file.write_bytes(b"mine")
    with pytest.raises(UndoRefusedError, match=f"turn 2 of session {session} cannot be undone") as refusal:
        undo(state, workspace)
    (line,) = (line for line in refusal.value.hint.splitlines() if "src/a.py was " in line)
    assert Path(line.split(" was ")[1]).read_bytes() == b"1"


def test_a_new_change_is_undone_first_and_stands_in_the_way_of_redo(
    workspace: Path, state: Path, file: Path
) -> None:
    did(state, workspace, b"1")
    old = did(state, workspace, b"2")
    undone = undo(state, workspace).recorded_as
    new = did(state, workspace, b"3")
    said = refused(lambda: redo(state, workspace))
    assert f"{new} changed files after the last undo" in said
    assert f"agent undo {undone}" in said
    assert undo(state, workspace).session_id == new
    assert redo(state, workspace).session_id == new
    assert (undo(state, workspace).session_id, undo(state, workspace).session_id != old) == (new, True)
    assert file.read_bytes() == ORIGINAL


def test_an_undo_by_id_counts_and_its_own_id_brings_it_back(workspace: Path, state: Path) -> None:
    first = did(state, workspace, b"1")
    run = Run(state, workspace)
    run.write("new.py", b"new\n")
    last = run.finish()
    undone = undo(state, workspace, first).recorded_as
    assert undo(state, workspace).session_id == last
    assert "nothing more to undo" in refused(lambda: undo(state, workspace))
    undo(state, workspace, undone)
    assert undo(state, workspace).session_id == first


def test_a_session_that_goes_on_after_an_undo_is_undone_from_there(
    workspace: Path, state: Path, file: Path
) -> None:
    session = did(state, workspace, b"1")
    later = did(state, workspace, b"2")
    undo(state, workspace)
    undo(state, workspace)
    go_on(state, session, workspace, 2, b"other")
    done = undo(state, workspace)
    assert (done.session_id, done.turn, file.read_bytes()) == (session, 2, ORIGINAL)
    assert "nothing more to undo" in refused(lambda: undo(state, workspace))
    redo(state, workspace)
    assert file.read_bytes() == b"other"
    assert later not in refused(lambda: redo(state, workspace))


def test_a_turn_after_an_undo_is_followed_by_the_turn_before_the_undone_one(
    workspace: Path, state: Path, file: Path
) -> None:
    session = did(state, workspace, b"1", b"2", b"3")
    undo(state, workspace)
    undo(state, workspace)
    go_on(state, session, workspace, 4, b"4")
    assert [(undo(state, workspace).turn, file.read_bytes()) for _ in range(2)] == [(4, b"1"), (1, ORIGINAL)]


def test_an_older_session_that_went_on_is_what_was_changed_last(
    workspace: Path, state: Path, file: Path
) -> None:
    older = did(state, workspace, b"1")
    later = did(state, workspace, b"2")
    go_on(state, older, workspace, 2, b"3")
    back = [(undo(state, workspace), file.read_bytes()) for _ in range(2)]
    assert [(done.session_id, text) for done, text in back] == [(older, b"2"), (later, b"1")]
    with pytest.raises(UndoRefusedError):  # its file went through the hands of another session
        undo(state, workspace)
    assert [(redo(state, workspace), file.read_bytes())[1] for _ in range(2)] == [b"2", b"3"]


def test_going_back_in_a_conversation_counts_as_undo_of_its_turns(
    workspace: Path, state: Path, file: Path
) -> None:
    run = Run(state, workspace)
    for number, text in enumerate((b"1", b"2", b"3"), 1):
        run.ledger.begin_turn(number)
        run.write("src/a.py", text)
    own = run.store.id
    with run.ledger.own_changes(undoing=True):
        rewind_files(state, workspace, run.store.folder, 2)
    with run.ledger.own_changes(undoing=True):
        assert undo(state, workspace, own=own).turn == 1
    assert file.read_bytes() == ORIGINAL
    for text in (b"1", b"3"):
        with run.ledger.own_changes(undoing=True):
            stepping.step_forward(state, workspace, own=own)
        assert file.read_bytes() == text
    run.finish()


def test_what_was_put_back_by_hand_is_said_and_the_next_undo_goes_on(
    workspace: Path, state: Path, file: Path
) -> None:
    first = did(state, workspace, b"1")
    last = did(state, workspace, b"2")
    file.write_bytes(b"1")
    done = undo(state, workspace)
    assert (done.session_id, done.restored, done.deleted, file.read_bytes()) == (last, (), (), b"1")
    assert undo(state, workspace).session_id == first
    assert file.read_bytes() == ORIGINAL


def test_an_open_session_is_stepped_through_alone(workspace: Path, state: Path) -> None:
    did(state, workspace, b"1")
    run = Run(state, workspace)
    own = run.store.id
    assert "this session has changed no files" in refused(lambda: undo(state, workspace, own=own))
    run.write("script", b"2")
    (workspace / "script").write_bytes(b"mine")
    with pytest.raises(UndoRefusedError) as refusal:
        undo(state, workspace, own=own)
    assert refusal.value.hint.startswith("/rewind takes back the others; put these right by hand")
    (workspace / "script").write_bytes(b"2")
    assert undo(state, workspace, own=own).session_id == own
    assert "nothing more to undo" in refused(lambda: undo(state, workspace, own=own))
    run.finish()


KILLED_REDO = """
import os, sys
from pathlib import Path
from agent.session.stepping import step_forward
def replace(source, destination):
    if destination.name == "script":
        os.kill(os.getpid(), 9)
    os.replace(source, destination)
step_forward(Path(sys.argv[1]), Path(sys.argv[2]), replace=replace)
"""


@pytest.mark.parametrize("redone", [True, False])
def test_a_redo_that_was_killed_half_way_goes_either_way(
    workspace: Path, state: Path, file: Path, redone: bool
) -> None:
    run = Run(state, workspace)
    run.write("src/a.py", b"1")
    run.write("script", b"1")
    session = run.finish()
    undo(state, workspace)
    command = [sys.executable, "-c", KILLED_REDO, str(state), str(workspace)]
    assert subprocess.run(command, check=False).returncode == -9
    assert (file.read_bytes(), (workspace / "script").read_bytes() != b"1") == (b"1", True)
    if redone:
        redo(state, workspace)
        assert (file.read_bytes(), (workspace / "script").read_bytes()) == (b"1", b"1")
    assert undo(state, workspace).session_id == session
    assert file.read_bytes() == ORIGINAL
    assert (workspace / "script").read_bytes() != b"1"
    assert "nothing more to undo" in refused(lambda: undo(state, workspace))
    redo(state, workspace)
    assert (file.read_bytes(), (workspace / "script").read_bytes()) == (b"1", b"1")
    assert "nothing to redo" in refused(lambda: redo(state, workspace))


def test_undo_records_of_before_are_understood(workspace: Path, state: Path, file: Path) -> None:
    did(state, workspace, b"1")
    did(state, workspace, b"2")
    undo(state, workspace)
    for index in state.glob("sessions/*/*/before/index.jsonl"):
        text = index.read_text("utf-8")
        index.write_text(re.sub(r', "(after|at|undoing)": ("[^"]*"|[\d.]+|true)', "", text), "utf-8")
    (newest,) = (path for path in state.glob("sessions/*/*/events.jsonl") if b'"undo"' in path.read_bytes())
    header, _, done = newest.read_text("utf-8").splitlines()
    newest.write_text(f"{header}\n{done}\n", "utf-8")
    undo(state, workspace)
    assert file.read_bytes() == ORIGINAL
    redo(state, workspace)
    redo(state, workspace)
    assert file.read_bytes() == b"2"
