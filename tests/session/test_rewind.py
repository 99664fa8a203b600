"""Going back to what files were before a turn."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.session.ledger import SessionLedger
from agent.session.rewind import RewoundFiles, rewind_files
from agent.session.undo import undo
from tests.session.test_undo import ACTIONS, perform, snapshot, without_folders


class Desk:
    """A workspace in which the session and a person change files."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.state = folder / "work", folder / "state"
        self.session = folder / "session"
        self.workspace.mkdir()
        self.session.mkdir()
        self.ledger = SessionLedger(self.workspace, self.session)

    def turn(self, number: int, **texts: str) -> None:
        """A turn in which a tool writes these files; `a` stands for `a.txt`."""
        self.ledger.begin_turn(number)
        for name, text in texts.items():
            path = self.workspace / f"{name}.txt"
            self.ledger.before_change(path)
            path.write_text(text, "utf-8")
            self.ledger.record(path)

    def person(self, name: str, text: str) -> None:
        (self.workspace / f"{name}.txt").write_text(text, "utf-8")

    def back(self, turn: int, *changed: str) -> RewoundFiles:
        with self.ledger.own_changes():
            return rewind_files(self.state, self.workspace, self.session, turn, changed)

    @property
    def files(self) -> dict[str, str]:
        return {path.stem: path.read_text("utf-8") for path in sorted(self.workspace.glob("*.txt"))}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_files_are_what_they_were_before_the_turn(desk: Desk):
    desk.person("a", "0")
    desk.turn(1, a="1")
    desk.turn(2, a="2", b="2")
    desk.turn(3, a="3", b="3", c="3")
    assert desk.back(3).restored == ("a.txt", "b.txt")
    assert desk.files == {"a": "2", "b": "2"}
    back = desk.back(2)
    assert (back.restored, back.deleted, back.left) == (("a.txt",), ("b.txt",), ())
    assert desk.files == {"a": "1"}
    desk.back(1)
    assert desk.files == {"a": "0"}


def test_one_can_go_forth_again(desk: Desk):
    desk.turn(1, a="1")
    desk.turn(2, a="2")
    desk.turn(3, a="3")
    desk.back(1)
    assert desk.files == {}
    desk.back(3)
    assert desk.files == {"a": "2"}


def test_going_back_can_be_undone(desk: Desk):
    desk.turn(1, a="1")
    desk.turn(2, a="2")
    back = desk.back(2)
    assert desk.files == {"a": "1"}
    undo(desk.state, desk.workspace, back.recorded_as)
    assert desk.files == {"a": "2"}


def test_what_a_person_changed_since_stays_and_is_named(desk: Desk):
    desk.turn(1, a="1", b="1")
    desk.turn(2, a="2", b="2")
    desk.person("a", "mine")
    back = desk.back(2)
    assert back.left == (("a.txt", "somebody else changed it since"),)
    assert back.restored == ("b.txt",)
    assert desk.files == {"a": "mine", "b": "1"}


def test_what_a_person_changed_between_two_changes_stays(desk: Desk):
    desk.turn(1, a="1")
    desk.turn(2, a="2")
    desk.person("a", "mine")
    desk.turn(3, a="3")
    assert [path for path, _ in desk.back(2).left] == ["a.txt"]
    assert desk.files == {"a": "3"}


def test_what_a_person_changed_before_the_turn_comes_back(desk: Desk):
    desk.turn(1, a="1")
    desk.person("a", "mine")
    desk.turn(2, b="2")
    desk.turn(3, a="3")
    assert desk.back(2).left == ()
    assert desk.files == {"a": "mine"}


def test_a_file_that_the_session_did_not_change_since_is_not_spoken_of(desk: Desk):
    desk.turn(1, a="1")
    desk.turn(2, b="2")
    desk.person("a", "mine")
    assert desk.back(2).left == ()
    assert desk.files == {"a": "mine"}


def test_what_a_command_of_the_model_did_to_a_changed_file_is_taken_back(desk: Desk):
    desk.turn(1, a="1")
    desk.turn(2)
    with desk.ledger.own_changes():
        desk.person("a", "formatted")
    desk.back(2)
    assert desk.files == {"a": "1"}


def test_it_works_in_a_session_that_was_taken_up_again(desk: Desk):
    desk.turn(1, a="1")
    desk.ledger.close()
    desk.ledger = SessionLedger(desk.workspace, desk.session)
    desk.turn(2, a="2")
    desk.ledger.close()
    desk.ledger = SessionLedger(desk.workspace, desk.session)
    desk.back(2)
    assert desk.files == {"a": "1"}


def test_a_moment_that_was_not_kept_is_no_reason_to_guess(desk: Desk):
    desk.turn(1, a="1")
    index = desk.session / "before" / "index.jsonl"
    desk.turn(2, a="2")
    lines = index.read_text("utf-8").splitlines(keepends=True)
    index.write_text("".join(line for line in lines if '"do":"turn"' not in line), "utf-8")
    assert desk.back(2).left == (("a.txt", "what it was before that turn was not kept"),)
    assert desk.files == {"a": "2"}


def test_files_that_only_another_session_knows_are_named(desk: Desk):
    desk.turn(1, a="1")
    assert desk.back(1, "a.txt", "old.txt").left == (("old.txt", "what it was is not kept in this session"),)


def test_a_session_that_counted_no_turns_goes_back_to_its_beginning(desk: Desk):
    desk.person("a", "0")
    path = desk.workspace / "a.txt"
    desk.ledger.before_change(path)
    desk.person("a", "1")
    desk.ledger.record(path)
    desk.back(1)
    assert desk.files == {"a": "0"}


def test_a_link_and_permissions_come_back(desk: Desk):
    desk.turn(1, a="1")
    (desk.workspace / "a.txt").chmod(0o755)
    desk.turn(2)
    path = desk.workspace / "a.txt"
    desk.ledger.before_change(path)
    path.unlink()
    path.symlink_to("b.txt")
    desk.ledger.record(path)
    desk.back(2)
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o755


@settings(max_examples=20, deadline=None)
@given(st.lists(ACTIONS, min_size=1, max_size=4), st.data())
def test_any_sequence_of_turns_can_be_gone_through_back_and_forth(
    turns: list[list[tuple[str, str, bytes, int]]], data: st.DataObject
):
    with tempfile.TemporaryDirectory() as scratch:
        desk = Desk(Path(scratch).resolve())
        (desk.workspace / "src").mkdir()
        (desk.workspace / "a.txt").write_bytes(b"original\r\n")
        (desk.workspace / "link").symlink_to("a.txt")
        before = {}
        for number, actions in enumerate(turns, 1):
            desk.ledger.begin_turn(number)
            before[number] = without_folders(snapshot(desk.workspace))
            for action in actions:
                perform(desk.ledger, desk.workspace, action)
        for number in data.draw(st.lists(st.sampled_from(sorted(before)), min_size=1, max_size=3)):
            assert desk.back(number).left == ()
            assert without_folders(snapshot(desk.workspace)) == before[number]
