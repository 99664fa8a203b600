"""A branch that was made for a task goes if nothing was committed on it, and in no other case."""

import subprocess
from pathlib import Path

import pytest

from agent.repo.worktrees import commit_everything, delete_unused_branch

NAME = "agent/a-1"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    git(tmp_path, "branch", NAME)
    return tmp_path


def test_branch_at_the_commit_is_deleted(repository: Path):
    assert delete_unused_branch(repository, NAME, git(repository, "rev-parse", "HEAD"))
    assert git(repository, "branch", "--format=%(refname:short)") == "main"


def test_branch_that_has_moved_stays(repository: Path):
    start = git(repository, "rev-parse", "HEAD")
    git(repository, "commit", "-q", "--allow-empty", "-m", "two")
    git(repository, "branch", "--force", NAME, "HEAD")
    assert not delete_unused_branch(repository, NAME, start)
    assert NAME in git(repository, "branch", "--format=%(refname:short)").split()


def test_branch_that_is_checked_out_stays(repository: Path):
    git(repository, "switch", "-q", NAME)
    assert not delete_unused_branch(repository, NAME, git(repository, "rev-parse", "HEAD"))


def test_what_was_left_is_committed_without_a_program_of_a_repository_inside(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "T")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@localhost")
    inner, ran = repository / "inner", tmp_path.parent / f"{tmp_path.name}-ran"
    git(repository, "init", "-q", "inner")
    (inner / ".gitattributes").write_text("* filter=x\n", "utf-8")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "first")
    git(repository, "add", "inner")
    git(inner, "commit", "-q", "--allow-empty", "-m", "second")
    git(inner, "config", "filter.x.clean", f"touch {ran}; cat")
    (inner / ".gitattributes").write_text("* filter=x \n", "utf-8")
    (repository / "new.txt").write_text("new\n", "utf-8")
    assert commit_everything(repository, "left")
    assert not ran.exists()
    tree = git(repository, "ls-tree", "HEAD")
    assert git(inner, "rev-parse", "HEAD") in tree
    assert "new.txt" in tree
