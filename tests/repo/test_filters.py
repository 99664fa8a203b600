"""When git is asked for filter programs that a repository names, and when its files show there are none."""

import os
from pathlib import Path

import pytest

from agent.repo.git import locate, without_local_filters
from tests.repo.conftest import Git

OFF = ("filter.x.clean", "")


def overrides(repo: Path) -> list[tuple[str, str]]:
    place = locate(repo, os.environ)
    return without_local_filters(repo, os.environ, (place.git_dir, place.common_dir))


def test_a_repository_without_filters_needs_no_git(repo: Path):
    nowhere = {"PATH": ""}
    place = locate(repo, os.environ)
    assert without_local_filters(repo, nowhere, (place.git_dir, place.common_dir)) == []


def test_a_filter_in_the_settings_is_switched_off(repo: Path, git: Git):
    git(repo, "config", "filter.x.clean", "touch ran")
    assert OFF in overrides(repo)


@pytest.mark.parametrize("header", ['[FILTER "x"]', "[Filter.x]"])
def test_a_filter_is_found_however_it_is_written(repo: Path, header: str):
    with (repo / ".git/config").open("a", encoding="utf-8") as settings:
        settings.write(f"{header}\n\tclean = touch ran\n")
    assert OFF in overrides(repo)


@pytest.mark.parametrize("key", ["include.path", "includeIf.gitdir:**.path"])
def test_a_filter_in_an_included_file_is_switched_off(repo: Path, git: Git, key: str):
    (repo / "more").write_text('[filter "x"]\n\tclean = touch ran\n', encoding="utf-8")
    git(repo, "config", key, str(repo / "more"))
    assert OFF in overrides(repo)


def test_a_filter_of_one_work_tree_is_switched_off(repo: Path, git: Git, tmp_path: Path):
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(repo, "worktree", "add", "-q", str(tmp_path / "other"))
    git(tmp_path / "other", "config", "--worktree", "filter.x.clean", "touch ran")
    assert OFF in overrides(tmp_path / "other")


def test_a_filter_of_the_main_settings_counts_in_a_work_tree(repo: Path, git: Git, tmp_path: Path):
    git(repo, "config", "filter.x.clean", "touch ran")
    git(repo, "worktree", "add", "-q", str(tmp_path / "other"))
    assert OFF in overrides(tmp_path / "other")
