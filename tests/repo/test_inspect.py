"""What is said about repositories of every kind, also those that cannot be worked with."""

import subprocess
from pathlib import Path

import pytest

from agent.repo.git import inspect
from agent.repo.git_process import ask
from agent.repo.state import DirtyPath, parse_status
from tests.repo.conftest import Git

STATUS = (
    b"# branch.oid 0123\0# branch.head main\0"
    b"1 M. N... 100644 100644 100644 aa bb with space.txt\0"
    b"1 .D N... 100644 100644 000000 aa aa gone\nname\0"
    b"2 R. N... 100644 100644 100644 aa aa R100 new\0old\0"
    b"u UU N... 100644 100644 100644 100644 a b c both.txt\0"
    b"? caf\xe9\0"
)


def by_path(dirty: tuple[DirtyPath, ...]) -> dict[str, DirtyPath]:
    return {entry.path: entry for entry in dirty}


def test_every_kind_of_status_line_is_understood() -> None:
    status = parse_status(STATUS)
    assert (status.head, status.branch) == ("0123", "main")
    assert status.dirty == (
        DirtyPath("with space.txt", staged=True),
        DirtyPath("gone\nname", unstaged=True),
        DirtyPath("new", staged=True),
        DirtyPath("both.txt", staged=True, unstaged=True, conflicted=True),
        DirtyPath("caf\udce9", untracked=True),
    )


async def test_a_clean_repository(repo: Path, git: Git) -> None:
    state = await inspect(repo / "src")
    assert state.problem == ""
    assert (state.root, state.branch, state.dirty) == (repo, "main", ())
    assert state.head == git(repo, "rev-parse", "HEAD").strip()
    assert (state.is_bare, state.is_detached) == (False, False)


async def test_staged_unstaged_and_untracked_paths_are_told_apart(repo: Path, git: Git) -> None:
    (repo / "a.txt").write_text("staged", encoding="utf-8")
    git(repo, "add", "a.txt")
    (repo / "a.txt").write_text("and changed again", encoding="utf-8")
    (repo / "b.txt").unlink()
    (repo / "new").mkdir()
    (repo / "new" / "ü\n.txt").touch()
    (repo / "x.log").touch()
    state = await inspect(repo)
    assert by_path(state.dirty) == {
        "a.txt": DirtyPath("a.txt", staged=True, unstaged=True),
        "b.txt": DirtyPath("b.txt", unstaged=True),
        "new/ü\n.txt": DirtyPath("new/ü\n.txt", untracked=True),
    }


async def test_an_unborn_branch(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q")
    state = await inspect(tmp_path)
    assert (state.problem, state.branch, state.head) == ("", "main", None)


async def test_a_detached_head(repo: Path, git: Git) -> None:
    git(repo, "checkout", "-q", "--detach")
    state = await inspect(repo)
    assert (state.problem, state.is_detached, state.branch) == ("", True, None)


async def test_a_linked_work_tree(repo: Path, git: Git, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    state = await inspect(tmp_path / "tree")
    assert (state.problem, state.branch, state.root) == ("", "other", tmp_path / "tree")
    assert state.common_dir == repo / ".git" != state.git_dir


async def test_a_submodule(repo: Path, git: Git, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "--quiet", "add", str(repo), "inner")
    state = await inspect(outer / "inner")
    assert (state.problem, state.root) == ("", outer / "inner")


async def test_a_bare_repository_has_nothing_to_work_on(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q", "--bare")
    state = await inspect(tmp_path)
    assert state.is_bare
    assert "bare repository" in state.problem


async def test_the_inside_of_gits_own_folder_is_not_a_work_tree(repo: Path) -> None:
    assert "inside git's own folder" in (await inspect(repo / ".git" / "refs")).problem


@pytest.mark.parametrize(
    ("command", "operation"),
    [
        (["merge", "other"], "merge"),
        (["rebase", "other"], "rebase"),
        (["cherry-pick", "other"], "cherry-pick"),
        (["revert", "--no-edit", "HEAD~1"], "revert"),
    ],
)
async def test_an_operation_that_waits_is_named(
    repo: Path, git: Git, command: list[str], operation: str
) -> None:
    git(repo, "checkout", "-q", "-b", "other", "HEAD~1")
    (repo / "a.txt").write_text("other\n", encoding="utf-8")
    git(repo, "commit", "-q", "-am", "other")
    git(repo, "checkout", "-q", "main")
    if operation == "revert":
        (repo / "a.txt").write_text("third\n", encoding="utf-8")
        git(repo, "commit", "-q", "-am", "third")
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, *command)
    assert (await inspect(repo)).operation == operation


async def test_no_repository_is_said(tmp_path: Path) -> None:
    state = await inspect(tmp_path)
    assert (state.is_repo, state.problem) == (False, f"{tmp_path} is not in a git repository")


async def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert "there is no folder" in (await inspect(tmp_path / "nope")).problem


@pytest.mark.parametrize("path", ["", "/nonexistent", "."])
async def test_missing_git_is_said(repo: Path, path: str) -> None:
    state = await inspect(repo, environment={"PATH": path})
    assert (state.is_repo, state.problem) == (False, "git is not installed or not on the PATH")


async def test_a_git_in_the_workspace_is_not_run(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "git").write_text("#!/bin/sh\ntouch started\n", encoding="utf-8")
    (repo / "git").chmod(0o755)
    monkeypatch.chdir(repo)
    await inspect(repo, environment={"PATH": "."})
    assert not (repo / "started").exists()


async def test_a_repository_of_another_user_is_one_line_with_the_cure(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    state = await inspect(repo)
    assert not state.is_repo
    assert f"git config --global --add safe.directory {repo}" in state.problem
    assert "\n" not in state.problem


async def test_a_damaged_index_is_one_line(repo: Path) -> None:
    (repo / ".git" / "index").write_bytes(b"rotten")
    state = await inspect(repo)
    assert state.is_repo
    assert "git cannot tell the state" in state.problem
    assert "\n" not in state.problem


async def test_a_git_that_hangs_is_given_up(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\n/bin/sleep 60 & wait\n", encoding="utf-8")
    (tmp_path / "bin" / "git").chmod(0o755)
    answer = ask(repo, ["status"], environment={"PATH": str(tmp_path / "bin")}, seconds=0.2)
    assert (answer.code, answer.first_error) == (124, "git status took longer than 0.2 seconds")


async def test_nothing_that_the_repository_configures_is_started(repo: Path, git: Git) -> None:
    program = repo.parent / "program"
    program.write_text(f"#!/bin/sh\ntouch {repo.parent}/started\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "filter.a=b.clean", "core.pager", "diff.external", "core.sshCommand"):
        git(repo, "config", key, str(program))
    (repo / ".gitattributes").write_text("*.txt filter=a=b\n", encoding="utf-8")
    (repo / "a.txt").touch()
    await inspect(repo)
    assert not (repo.parent / "started").exists()


async def test_an_environment_of_another_repository_does_not_mislead(
    repo: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / ".git" / "index"))
    state = await inspect(repo)
    assert (state.root, state.dirty) == (repo, ())


async def test_looking_does_not_write(repo: Path) -> None:
    (repo / "a.txt").touch()
    before = (repo / ".git" / "index").stat().st_mtime_ns
    await inspect(repo)
    assert (repo / ".git" / "index").stat().st_mtime_ns == before
