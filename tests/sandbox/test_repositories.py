"""Git works in the sandbox, and what could make it start programs later stays closed."""

import subprocess
from pathlib import Path

import pytest

from agent.sandbox.git_folders import git_folders
from tests.sandbox.cage import Cage

_ME = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "protocol.file.allow=always")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *_ME, *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


COMMIT = f"echo b >> a.txt && git {' '.join(_ME)} commit -q -am second && git log --oneline | wc -l"


def test_a_commit_can_be_made(cage: Cage):
    repository(cage.workspace)
    assert cage.run(COMMIT).output.strip() == "2"


def test_a_commit_can_be_made_in_a_folder_of_a_repository(cage: Cage):
    cage.workspace = cage.workspace / "inner"
    repository(cage.workspace.parent)
    repository_folder = cage.workspace
    repository_folder.mkdir()
    (repository_folder / "a.txt").write_text("x", encoding="utf-8")
    git(repository_folder, "add", ".")
    assert cage.run(COMMIT).output.strip() == "2"


def test_a_commit_can_be_made_in_a_worktree(cage: Cage):
    main = repository(cage.outside / "main")
    cage.workspace.rmdir()
    git(main, "worktree", "add", "-q", "-b", "other", str(cage.workspace))
    assert cage.run(COMMIT).output.strip() == "2"
    assert cage.run(f"echo x > {main}/a.txt").code != 0


def test_a_commit_can_be_made_in_a_submodule(cage: Cage):
    inner, outer = repository(cage.outside / "inner"), repository(cage.outside / "outer")
    git(outer, "submodule", "--quiet", "add", str(inner), "sub")
    cage.workspace = outer / "sub"
    assert cage.run(COMMIT).output.strip() == "2"


@pytest.mark.only("bubblewrap")
@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/config",
        "git config core.fsmonitor ./evil",
        "echo x > .git/hooks/post-checkout",
        "rm -rf .git/hooks",
        "mv .git .git2",
        "mv .git/config .git/c",
        "rm -rf .git; test ! -e .git/config",
        "echo x > .agent/config.toml",
        "mv .agent other",
    ],
)
def test_what_git_starts_programs_by_stays_as_it_is(cage: Cage, command: str):
    repository(cage.workspace)
    (cage.workspace / ".agent").mkdir()
    (cage.workspace / ".agent" / "config.toml").write_text("", encoding="utf-8")
    before = (cage.workspace / ".git" / "config").read_bytes()
    assert cage.run(command).code != 0
    assert (cage.workspace / ".git" / "config").read_bytes() == before
    assert not list((cage.workspace / ".git" / "hooks").glob("post-checkout"))
    assert (cage.workspace / ".agent" / "config.toml").read_bytes() == b""


@pytest.mark.only("bubblewrap")
def test_a_folder_for_hooks_cannot_be_made_where_none_is(cage: Cage):
    repository(cage.workspace)
    for path in (cage.workspace / ".git" / "hooks").iterdir():
        path.unlink()
    (cage.workspace / ".git" / "hooks").rmdir()
    assert cage.run("mkdir -p .git/hooks && echo x > .git/hooks/pre-commit").code != 0


def test_a_link_to_the_folder_of_another_repository_opens_nothing(tmp_path: Path):
    stranger = repository(tmp_path / "stranger")
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / ".git").write_text(f"gitdir: {stranger}/.git\n", encoding="utf-8")
    assert git_folders(workspace).writable == ()


def test_a_link_to_a_worktree_of_somebody_else_opens_nothing(tmp_path: Path):
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "-b", "other", str(tmp_path / "real"))
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / ".git").write_bytes((tmp_path / "real" / ".git").read_bytes())
    assert git_folders(workspace).writable == ()


def test_a_symbolic_link_in_the_place_of_the_folder_opens_nothing(tmp_path: Path):
    stranger = repository(tmp_path / "stranger")
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / ".git").symlink_to(stranger / ".git")
    assert git_folders(workspace).writable == ()
