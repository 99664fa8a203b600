"""What commands do to files, and that undo takes it back byte for byte."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.app.commanded import CommandWatch, recover_held
from agent.app.ignored import MOST_IN_FOLDERS
from agent.core.errors import AgentError
from agent.session.held import FOLDER_NAME, USUAL_BOUNDS, Bounds
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


def shell(folder: Path, command: str) -> None:
    subprocess.run(["bash", "-ec", command], cwd=folder, env=ALONE, check=True, capture_output=True)


def without_git(folder: Path) -> dict[str, tuple]:
    return {name: what for name, what in snapshot(folder).items() if not name.startswith(".git/")}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository in which a person has work of every kind."""
    folder = tmp_path / "workspace"
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


@pytest.mark.parametrize(
    "command",
    [
        "echo x > clean.txt",
        "echo x >> dirty.txt; echo x > staged.txt; echo x > new.txt",
        "rm clean.txt dirty.txt new.txt staged.txt run.sh private.txt link",
        "rm -r src",
        "git mv clean.txt src/moved.txt",
        "mv new.txt src/deep/newer.txt",
        "mv src other",
        "chmod 600 run.sh; chmod 755 clean.txt; chmod 644 private.txt; chmod 400 new.txt",
        "rm private.txt",
        "rm link; ln -s src link; ln -s nowhere second",
        "rm link; echo file > link",
        "rm clean.txt; ln -s dirty.txt clean.txt",
        "rm clean.txt; mkdir clean.txt; touch clean.txt/inside",
        "rm -r src; echo file > src",
        "mv src away; ln -s away src",
        "mkdir -p made/deep; echo 1 > made/deep/1; echo 2 > made/2",
        "echo back > gone.txt",
        "git checkout -q -- .",
        "git stash -q -u",
        "git reset -q --hard",
        "git clean -qfd",
        "git add -A; git commit -qm two; echo x > clean.txt",
        "git checkout -q -b other; git add -A; git commit -qm two; git checkout -q -",
        "rm .gitignore",
        "echo '*.txt' >> .gitignore; echo x > new.txt; echo y > clean.txt",
        "sed -i s/odd/even/ odd*",
        "for i in $(seq 300); do echo $i > many-$i; done",
        "git rm -q --cached clean.txt; echo x > clean.txt",
    ],
)
def test_what_a_command_does_to_files_is_undone(workspace: Path, state: Path, command: str) -> None:
    before = without_git(workspace)
    session = Session(state, workspace)
    session.run(command)
    assert without_git(workspace) != before
    after = without_git(workspace)
    session.undo()
    assert without_git(workspace) == before
    assert session.told == []
    undo(state, workspace)
    assert without_git(workspace) == after


def test_the_index_and_the_commit_are_left_alone(workspace: Path, state: Path) -> None:
    index = (workspace / ".git" / "index").read_bytes()
    names = sorted(path for path in (workspace / ".git").rglob("*"))
    session = Session(state, workspace)
    session.run("echo x > clean.txt; rm new.txt")
    session.undo()
    assert (workspace / ".git" / "index").read_bytes() == index
    assert sorted(path for path in (workspace / ".git").rglob("*")) == names


def test_several_commands_are_undone_together_and_the_person_keeps_what_came_between(
    workspace: Path, state: Path
) -> None:
    session = Session(state, workspace)
    session.run("echo x > clean.txt")
    (workspace / "mine.txt").write_bytes(b"in between")
    session.run("echo y > clean.txt; echo z > dirty.txt")
    session.undo()
    assert (workspace / "clean.txt").read_bytes() == b"clean\n"
    assert (workspace / "dirty.txt").read_bytes() == b"dirty\0\xff"
    assert (workspace / "mine.txt").read_bytes() == b"in between"


def test_a_file_that_the_session_wrote_and_a_command_changed_is_undone(workspace: Path, state: Path) -> None:
    session = Session(state, workspace)
    session.ledger.before_change(workspace / "clean.txt")
    (workspace / "clean.txt").write_bytes(b"by a tool\n")
    session.ledger.record(workspace / "clean.txt")
    session.run("echo x >> clean.txt")
    session.undo()
    assert (workspace / "clean.txt").read_bytes() == b"clean\n"


def test_an_ignored_file_that_comes_to_light_is_not_taken_for_a_new_one(workspace: Path, state: Path) -> None:
    session = Session(state, workspace)
    session.run("rm .gitignore; echo more >> kept.log")
    session.undo()
    assert (workspace / "kept.log").read_bytes() == b"ignoredmore\n"


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


def test_files_beyond_the_bounds_are_named_when_a_command_changes_them(workspace: Path, state: Path) -> None:
    session = Session(state, workspace, Bounds(file_bytes=5))
    session.run("echo x > new.txt; echo x > clean.txt")
    assert session.told == ["undo will not cover files that a command changed: new.txt is larger than 0 MB"]
    session.undo()
    assert (workspace / "clean.txt").read_bytes() == b"clean\n"
    assert (workspace / "new.txt").read_bytes() == b"x\n"


@pytest.mark.parametrize("attributes", ["* text=auto\n", "*.txt text eol=crlf\n", "*.txt ident\n"])
def test_bytes_that_git_converts_come_back_as_they_were_or_not_at_all(
    workspace: Path, state: Path, attributes: str
) -> None:
    (workspace / ".gitattributes").write_text(attributes)
    (workspace / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    (workspace / "mixed.txt").write_bytes(b"one\r\ntwo\n")
    shell(workspace, "git add -A; git commit -qm attributes")
    session = Session(state, workspace)
    session.run("rm crlf.txt mixed.txt clean.txt")
    session.undo()
    for name, data in (("crlf.txt", b"one\r\ntwo\r\n"), ("mixed.txt", b"one\r\ntwo\n")):
        path = workspace / name
        assert path.read_bytes() == data if path.exists() else name in " ".join(session.told)


def test_a_folder_without_git_is_covered(tmp_path: Path, state: Path) -> None:
    folder = tmp_path / "plain"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"a")
    (folder / "sub" / "b.txt").write_bytes(b"b")
    before = snapshot(folder)
    session = Session(state, folder)
    session.run("echo x > a.txt; rm -r sub; mkdir c; echo c > c/c.txt")
    session.undo()
    assert snapshot(folder) == before


def test_a_workspace_below_the_top_of_the_repository_is_covered(workspace: Path, state: Path) -> None:
    before = without_git(workspace)
    session = Session(state, workspace / "src")
    session.run("echo x > deep/a.py; echo y > new.py")
    session.undo()
    assert without_git(workspace) == before


def test_what_is_unchanged_is_not_copied_twice_and_nothing_stays_behind(workspace: Path, state: Path) -> None:
    session = Session(state, workspace)
    held = session.store.folder / FOLDER_NAME
    session.run("echo x > clean.txt")
    first = {path.name: path.stat().st_ino for path in held.iterdir() if len(path.name) == 64}
    for path in workspace.iterdir():
        if path.is_file() and not path.is_symlink():
            os.utime(path, (1, 1))
    session.run("true")
    session.run("true")
    second = {path.name: path.stat().st_ino for path in held.iterdir() if len(path.name) == 64}
    assert first
    assert set(first) <= set(second)
    session.finish()
    assert not held.exists()


def test_a_session_that_is_killed_during_a_command_keeps_what_the_person_had(
    workspace: Path, state: Path
) -> None:
    session = Session(state, workspace)
    session.watch.begin()
    shell(workspace, "echo x > dirty.txt; echo x > clean.txt; rm new.txt")
    session.finish()  # what a kill does to the files of the session: nothing
    recover_held(session.store.folder, workspace)
    with pytest.raises(AgentError) as refused:
        undo(state, workspace, session.store.id)
    lines = refused.value.hint.split("\n")
    kept = [Path(line.split(" was ")[1]).read_bytes() for line in lines if " was " in line]
    assert sorted(kept) == sorted([b"dirty\0\xff", b"clean\n", b"untracked"])


@pytest.mark.parametrize("damage", [shutil.rmtree, lambda git: (git / "index").write_bytes(b"x")])
def test_a_repository_that_breaks_meanwhile_costs_no_held_file(
    workspace: Path, state: Path, damage: Callable[[Path], object]
) -> None:
    session = Session(state, workspace)
    session.watch.begin()
    shell(workspace, "echo x > new.txt")
    damage(workspace / ".git")
    session.watch.end()
    assert list(session.store.folder.joinpath(FOLDER_NAME).glob("????????*"))


def test_a_clean_file_that_is_too_large_to_be_kept_is_named(workspace: Path, state: Path) -> None:
    (workspace / "huge.bin").write_bytes(b"\0" * 65_000_000)
    shell(workspace, "git add huge.bin; git commit -qm huge")
    session = Session(state, workspace)
    session.run("echo x > huge.bin; echo x > clean.txt")
    assert session.told == [
        "undo will not cover files that a command changed: huge.bin is not in git as it was, or too large"
    ]
    session.undo()
    assert (workspace / "clean.txt").read_bytes() == b"clean\n"


@pytest.mark.parametrize("switch", ["--skip-worktree", "--assume-unchanged"])
@pytest.mark.parametrize("command", ["echo x > clean.txt", "rm clean.txt", "rm clean.txt; mkdir clean.txt"])
def test_work_that_git_was_told_not_to_look_at_comes_back(
    workspace: Path, state: Path, switch: str, command: str
) -> None:
    shell(workspace, f"git update-index {switch} clean.txt")
    (workspace / "clean.txt").write_bytes(b"for this machine only\n")
    session = Session(state, workspace)
    session.run(command)
    session.undo()
    assert (workspace / "clean.txt").read_bytes() == b"for this machine only\n"


def test_empty_folders_in_the_place_of_a_file_make_way(workspace: Path, state: Path) -> None:
    before = without_git(workspace)
    session = Session(state, workspace)
    session.run("rm clean.txt dirty.txt; mkdir -p clean.txt/a/b dirty.txt")
    session.undo()
    assert without_git(workspace) == before


def test_a_folder_with_work_in_it_in_the_place_of_a_file_stays_and_is_named(
    workspace: Path, state: Path
) -> None:
    session = Session(state, workspace)
    session.run("rm clean.txt; echo x > dirty.txt; mkdir clean.txt")
    (workspace / "clean.txt" / "a" / "empty").mkdir(parents=True)
    (workspace / "clean.txt" / "mine").symlink_to("a", target_is_directory=True)
    before = without_git(workspace)
    with pytest.raises(AgentError, match=r"clean\.txt: a folder with something in it is in its place now"):
        session.undo()
    assert without_git(workspace) == before


def test_a_file_that_a_sparse_checkout_has_not_is_gone_again(workspace: Path, state: Path) -> None:
    shell(workspace, "git stash -q -u; git sparse-checkout set --no-cone '/*' '!/src/'")
    session = Session(state, workspace)
    session.run("mkdir -p src/deep; echo x > src/deep/a.py")
    session.undo()
    assert not (workspace / "src" / "deep" / "a.py").exists()


def test_a_pipe_in_the_place_of_a_file_does_not_hinder_undo(workspace: Path, state: Path) -> None:
    before = without_git(workspace)
    session = Session(state, workspace)
    session.run("rm clean.txt; mkfifo clean.txt; echo x > dirty.txt")
    session.undo()
    assert without_git(workspace) == before


def test_a_pipe_that_a_program_left_does_not_hinder_undo(tmp_path: Path, state: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"a")
    session = Session(state, folder)
    session.run("mkfifo pipe; echo x > a.txt")
    session.undo()
    assert (folder / "a.txt").read_bytes() == b"a"
    assert (folder / "pipe").is_fifo()


def test_a_command_that_deletes_the_repository_costs_no_work_that_was_not_committed(
    workspace: Path, state: Path
) -> None:
    session = Session(state, workspace)
    session.run("echo x > dirty.txt; rm new.txt; rm -rf .git")
    session.undo()
    assert (workspace / "dirty.txt").read_bytes() == b"dirty\0\xff"
    assert (workspace / "new.txt").read_bytes() == b"untracked"
