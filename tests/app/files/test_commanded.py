"""What commands do to files, and that undo takes it back byte for byte."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.app.files.killed_command import recover_held
from agent.core.errors import AgentError
from agent.session.held import FOLDER_NAME, Bounds
from tests.app.files.commanded_rig import Session, kept_after_a_kill, repository, shell, without_git
from tests.session.undo_rig import redo, snapshot, undo


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return repository(tmp_path / "workspace")


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
    redo(state, workspace)
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
    kept = kept_after_a_kill(Session(state, workspace), "echo x > dirty.txt; echo x > clean.txt; rm new.txt")
    assert kept == sorted([b"dirty\0\xff", b"clean\n", b"untracked"])


def test_work_that_is_overwritten_in_the_background_is_kept_and_told(workspace: Path, state: Path) -> None:
    session = Session(state, workspace)
    session.watch.begin()
    session.watch.end(goes_on=True)
    shell(workspace, "echo x > dirty.txt; rm new.txt")
    session.run("echo x > clean.txt")
    session.watch.begin()
    session.watch.end(goes_on=True)
    shell(workspace, "echo x > staged.txt")
    session.finish()
    said = [
        line.split(" changed while a command was in the background; what it was is ") for line in session.told
    ]
    assert {name: Path(kept).read_bytes() for name, kept in said} == {
        "dirty.txt": b"dirty\0\xff",
        "new.txt": b"untracked",
        "staged.txt": b"3\n",
    }
    undo(state, workspace, session.store.id)
    assert (workspace / "clean.txt").read_bytes() == b"clean\n"
    assert (workspace / "dirty.txt").read_bytes() == b"x\n"


def test_work_that_is_overwritten_in_the_background_survives_a_kill(workspace: Path, state: Path) -> None:
    session = Session(state, workspace)
    session.watch.begin()
    session.watch.end(goes_on=True)
    shell(workspace, "echo x > dirty.txt")
    session.store.close()  # what a kill does to the files of the session: nothing
    recover_held(session.store.folder, workspace)
    with pytest.raises(AgentError) as refused:
        undo(state, workspace, session.store.id)
    assert Path(refused.value.hint.rpartition("dirty.txt was ")[2]).read_bytes() == b"dirty\0\xff"


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
