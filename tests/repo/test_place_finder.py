"""Where a workspace is in a repository is not asked twice, and is asked again when it may have changed."""

import shutil
from pathlib import Path

import pytest

from agent.repo.work_tree import PlaceFinder, tree_place
from tests.repo.conftest import Git


@pytest.fixture
def finder(repo: Path) -> PlaceFinder:
    finder = PlaceFinder(repo / "src")
    assert finder.find() == tree_place(repo / "src")
    return finder


def test_git_is_not_asked_again(finder: PlaceFinder, monkeypatch: pytest.MonkeyPatch):
    known = finder.find()
    monkeypatch.setenv("PATH", "")
    assert known is not None
    assert finder.find() is known


def test_a_commit_moves_nothing(finder: PlaceFinder, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch):
    known = finder.find()
    git(repo, "commit", "-q", "--allow-empty", "-m", "third")
    git(repo, "checkout", "-q", "-b", "elsewhere")
    monkeypatch.setenv("PATH", "")
    assert finder.find() is known


def test_a_repository_that_is_made_inside_is_seen(finder: PlaceFinder, repo: Path, git: Git):
    git(repo / "src", "init", "-q")
    place = finder.find()
    assert place is not None
    assert place.root == repo / "src"


def test_a_repository_that_goes_is_missed(finder: PlaceFinder, repo: Path):
    shutil.rmtree(repo / ".git")
    assert finder.find() is None


def test_another_work_tree_in_the_settings_is_seen(finder: PlaceFinder, repo: Path, git: Git, tmp_path: Path):
    git(repo, "config", "core.worktree", str(tmp_path))
    place = finder.find()
    assert place == tree_place(repo / "src")
    assert place is None or place.root == tmp_path


def test_a_repository_that_comes_is_seen(tmp_path: Path, git: Git):
    finder = PlaceFinder(tmp_path)
    assert finder.find() is None
    git(tmp_path, "init", "-q")
    assert finder.find() is not None
