"""Ignored files that may be somebody's work, and that undo brings back."""

from pathlib import Path

import pytest

from agent.app.files.ignored import MOST_IN_FOLDERS
from agent.app.files.killed_command import recover_held
from agent.session.held import Bounds
from tests.app.files.commanded_rig import Session, repository, shell


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return repository(tmp_path / "workspace")


def test_ignored_files_that_lie_by_themselves_come_back(state: Path, workspace: Path):
    (workspace / ".git" / "info" / "exclude").write_text(".env\n*.db\n*.o\n/tool\nbuild/\n", "utf-8")
    (workspace / "build").mkdir()
    precious, made_again = (".env", "src/notes.db"), ("a.o", "tool", "build/a")
    for name in (*precious, *made_again):
        (workspace / name).write_bytes(b"mine")
    (workspace / "tool").chmod(0o755)
    session = Session(state, workspace)
    session.run("echo x > .env; rm src/notes.db; for file in a.o tool build/a; do echo x > $file; done")
    session.undo()
    assert [(workspace / name).read_bytes() for name in precious] == [b"mine", b"mine"]
    assert [(workspace / name).read_bytes() for name in made_again] == [b"x\n"] * 3
    assert session.told == []


def test_ignored_folders_that_may_be_somebodys_work_come_back(state: Path, workspace: Path):
    (workspace / ".git" / "info" / "exclude").write_text("data/\nenv/\nnode_modules/\n", "utf-8")
    precious, made_again = ("data/a.csv", "data/deep/notes"), ("data/x.pyc", "env/a", "node_modules/a")
    for name in (*precious, *made_again, "env/pyvenv.cfg"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(b"mine")
    session = Session(state, workspace)
    session.run(
        "rm -r data env/a node_modules; mkdir -p data/more; echo x > data/more/new; echo y > data/a.csv"
    )
    session.undo()
    assert [(workspace / name).read_bytes() for name in precious] == [b"mine", b"mine"]
    assert [name for name in made_again if (workspace / name).exists()] == []
    assert not (workspace / "data" / "more").exists()


def test_an_ignored_folder_with_very_many_files_is_left_out(state: Path, workspace: Path):
    (workspace / ".git" / "info" / "exclude").write_text("data/\nnotes/\n", "utf-8")
    for folder in ("data", "notes"):
        (workspace / folder).mkdir()
    for number in range(MOST_IN_FOLDERS + 1):
        (workspace / "data" / str(number)).touch()
    (workspace / "notes" / "a").write_bytes(b"mine")
    session = Session(state, workspace)
    session.run("rm data/0 notes/a")
    session.undo()
    assert (workspace / "notes" / "a").read_bytes() == b"mine"
    assert not (workspace / "data" / "0").exists()


def test_what_tools_for_editing_change_comes_back_wherever_it_lies(state: Path, workspace: Path):
    (workspace / ".git" / "info" / "exclude").write_text("build/\n", "utf-8")
    nested = workspace / "nested"
    nested.mkdir()
    shell(nested, "git init -q")
    files = [workspace / "build" / "big.bin", nested / "a.txt", workspace / "node_modules" / "a.o"]
    session = Session(state, workspace, Bounds(file_bytes=5))
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"mine, and more than is held before a command")
        session.ledger.before_change(file)
        file.write_bytes(b"other")
        session.ledger.record(file)
    session.undo()
    assert {file.read_bytes() for file in files} == {b"mine, and more than is held before a command"}


def test_ignored_folders_leave_the_room_to_what_lies_open(state: Path, workspace: Path):
    (workspace / ".git" / "info" / "exclude").write_text("data/\n", "utf-8")
    (workspace / "data").mkdir()
    (workspace / "data" / "small").write_bytes(b"1")
    (workspace / "new.txt").write_bytes(b"open" * 100)
    total = sum((workspace / name).stat().st_size for name in ("dirty.txt", "staged.txt", "new.txt"))
    session = Session(state, workspace, Bounds(bytes=total + 20))
    session.run("for file in data/small new.txt; do echo x > $file; done")
    session.undo()
    assert (workspace / "new.txt").read_bytes() == b"open" * 100


def test_an_ignored_file_survives_a_kill_in_the_middle_of_a_command(state: Path, workspace: Path):
    (workspace / ".git" / "info" / "exclude").write_text(".env\n", "utf-8")
    (workspace / ".env").write_bytes(b"mine")
    session = Session(state, workspace)
    session.watch.begin()
    shell(workspace, "echo x > .env")
    session.store.close()
    recover_held(session.store.folder, workspace)
    kept = [path.read_bytes() for path in session.store.folder.rglob("*") if path.is_file()]
    assert b"mine" in kept
