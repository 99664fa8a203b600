"""What commands do to files of repositories inside of the workspace's own, and that undo takes it back."""

import shutil
from pathlib import Path

import pytest

from agent.app.files.ignored import MOST_IN_FOLDERS
from agent.session.held import Bounds
from tests.app.files.commanded_rig import Session, kept_after_a_kill, repository, shell
from tests.session.undo_rig import redo, snapshot

INSIDE = ("sub", "clone", "clone/deep", "repos/one")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a submodule `sub`, a clone `clone` that it does not know, one in that, and one that
    it ignores."""
    folder = tmp_path_factory.mktemp("made")
    workspace, other = repository(folder / "workspace"), repository(folder / "other")
    shell(workspace, f"git -c protocol.file.allow=always submodule add -q {other} sub; git commit -qm sub")
    shell(workspace, f"git clone -q {other} clone; git clone -q {other} clone/deep")
    shell(workspace, f"git clone -q {other} repos/one; echo repos/ >> .git/info/exclude")
    for name in INSIDE:
        (workspace / name / "dirty.txt").write_bytes(b"mine\0\xff")
        (workspace / name / "new.txt").write_bytes(b"untracked")
        (workspace / name / ".env").write_bytes(b"only here")
        shell(workspace / name, 'echo .env >> "$(git rev-parse --git-path info/exclude)"')
    return workspace


@pytest.fixture
def workspace(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "workspace", symlinks=True)
    return tmp_path / "workspace"


def files_in(folder: Path) -> dict[str, tuple]:
    return {name: what for name, what in snapshot(folder).items() if "/.git/" not in f"/{name}"}


@pytest.mark.parametrize(
    "command",
    [
        "echo x > clean.txt; echo x > dirty.txt; rm new.txt .env; echo x > made.txt; chmod 755 private.txt",
        "mv src away; mkdir -p made/deep; echo 1 > made/deep/1; rm link; ln -s src link",
        "git add -A; git commit -qm two; git checkout -q -b other; echo x > clean.txt",
        "git reset -q --hard; git clean -qfdx",
        "echo x >> clean.txt; git add .; chmod +x clean.txt",
        "chmod +x clean.txt; git commit -qam two; echo x >> clean.txt",
    ],
)
def test_what_a_command_does_inside_is_undone(workspace: Path, state: Path, command: str) -> None:
    before = files_in(workspace)
    session = Session(state, workspace)
    session.run("".join(f"(cd {folder}; {command}); " for folder in INSIDE))
    after = files_in(workspace)
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    assert all(any(name.startswith(f"{folder}/") for name in changed) for folder in INSIDE)
    session.undo()
    assert files_in(workspace) == before
    assert session.told == []
    redo(state, workspace)
    assert files_in(workspace) == after


def test_a_clone_in_an_ignored_folder_with_very_many_files_is_covered(workspace: Path, state: Path) -> None:
    (workspace / "repos" / "many").mkdir()
    for number in range(MOST_IN_FOLDERS + 1):
        (workspace / "repos" / "many" / str(number)).touch()
    before = files_in(workspace)
    session = Session(state, workspace)
    session.run("cd repos/one; echo x > clean.txt; rm dirty.txt .env; echo x > made.txt; rm -r src")
    session.undo()
    assert files_in(workspace) == before


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf sub",
        "git submodule --quiet deinit -f sub",
        "rm -rf sub; echo x > sub",
        "git rm -qrf sub",
    ],
)
def test_a_submodule_that_is_taken_away_comes_back(workspace: Path, state: Path, command: str) -> None:
    before = {name: what for name, what in files_in(workspace).items() if name != ".gitmodules"}
    session = Session(state, workspace)
    session.run(command)
    session.undo()
    after = files_in(workspace)
    assert {name: after.get(name) for name in before} == before
    shell(workspace / "sub", "git status")


def test_nothing_of_git_itself_changes_inside(workspace: Path, state: Path) -> None:
    def of_git() -> dict[str, tuple]:
        return {name: what for name, what in snapshot(workspace).items() if "/.git/" in f"/{name}"}

    before = of_git()
    session = Session(state, workspace)
    session.run("for folder in sub clone clone/deep; do echo x > $folder/clean.txt; rm $folder/new.txt; done")
    session.undo()
    assert of_git() == before


def test_a_clone_that_loses_its_repository_loses_no_file(workspace: Path, state: Path) -> None:
    before = files_in(workspace)
    session = Session(state, workspace)
    session.run("rm -rf clone/.git; echo x > clone/new.txt")
    session.undo()
    del before["clone/.git"]
    assert files_in(workspace) == before


def test_repositories_that_a_command_makes_are_told(workspace: Path, state: Path) -> None:
    shell(workspace, "git submodule --quiet deinit -f sub")
    session = Session(state, workspace)
    session.run(
        "git init -q fresh; echo x > fresh/a; git -c protocol.file.allow=always submodule -q update --init"
    )
    assert session.told == [
        "undo will not cover the repository fresh/ that a command made",
        "undo will not cover the repository sub/ that a command made",
    ]


def test_a_session_that_is_killed_keeps_what_was_inside(workspace: Path, state: Path) -> None:
    kept = kept_after_a_kill(
        Session(state, workspace), "rm sub/dirty.txt; echo x > clone/clean.txt; echo x > clone/deep/new.txt"
    )
    assert kept == sorted([b"mine\0\xff", b"clean\n", b"untracked"])


def test_what_looks_like_a_repository_and_is_none_is_told(workspace: Path, state: Path) -> None:
    shutil.rmtree(workspace / "clone" / ".git" / "objects")
    session = Session(state, workspace)
    session.run("echo x > clean.txt")
    assert session.told == ["undo will not cover what commands change in the repository clone/"]
    session.undo()
    assert (workspace / "clean.txt").read_bytes() == b"clean\n"


def test_more_repositories_than_are_asked_are_told(tmp_path: Path, state: Path) -> None:
    folder = repository(tmp_path / "many")
    shell(folder, "git init -q one; git init -q two; echo 1 > one/a; echo 2 > two/a")
    session = Session(state, folder, Bounds(inner=1))
    session.run("rm one/a two/a clean.txt")
    assert session.told == ["undo will not cover what commands change in more than 1 inner repositories"]
    session.undo()
    assert (folder / "one" / "a").exists()
    assert not (folder / "two" / "a").exists()
    assert (folder / "clean.txt").exists()


def test_programs_that_an_inner_repository_names_do_not_run(workspace: Path, state: Path) -> None:
    marker = workspace.parent / "ran"
    for name in INSIDE:
        shell(
            workspace / name,
            f"git config core.fsmonitor 'touch {marker}'; git config filter.x.clean 'touch {marker}; cat';"
            f"git config filter.x.smudge 'touch {marker}; cat'; git config core.hooksPath {workspace.parent};"
            "echo 'staged.txt filter=x' > .gitattributes; echo 2 > staged.txt",
        )
    marker.unlink(missing_ok=True)
    session = Session(state, workspace)
    session.run("".join(f"rm -r {name}/src; echo x > {name}/clean.txt; " for name in INSIDE))
    session.undo()
    assert not marker.exists()
    assert session.told == []
    assert all((workspace / name / "clean.txt").read_bytes() == b"clean\n" for name in INSIDE)
