"""What a run changed, seen through work that was dirty before."""

from pathlib import Path

from agent.repo.git import changed_since, inspect
from agent.repo.state import DirtyPath, fingerprints
from tests.repo.conftest import Git


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


async def test_dirty_files_that_the_run_left_alone_are_not_its_changes(repo: Path, git: Git) -> None:
    write(repo / "a.txt", "mine, staged\n")
    git(repo, "add", "a.txt")
    write(repo / "b.txt", "mine\n")
    write(repo / "new.txt", "mine\n")
    before = await inspect(repo)
    write(repo / "src" / "c.txt", "run\n")
    assert await changed_since(before) == [repo / "src" / "c.txt"]


async def test_dirty_files_that_the_run_changed_are(repo: Path) -> None:
    write(repo / "a.txt", "mine\n")
    write(repo / "new.txt", "mine\n")
    write(repo / "gone.txt", "mine\n")
    before = await inspect(repo)
    write(repo / "a.txt", "run!\n")
    write(repo / "new.txt", "run!\n")
    (repo / "gone.txt").unlink()
    assert await changed_since(before) == [repo / "a.txt", repo / "gone.txt", repo / "new.txt"]


async def test_a_dirty_file_that_the_run_set_back_to_the_commit_is_changed(repo: Path, git: Git) -> None:
    write(repo / "a.txt", "mine\n")
    before = await inspect(repo)
    git(repo, "checkout", "a.txt")
    assert await changed_since(before) == [repo / "a.txt"]


async def test_staging_alone_is_no_change(repo: Path, git: Git) -> None:
    write(repo / "a.txt", "mine\n")
    before = await inspect(repo)
    git(repo, "add", "a.txt")
    assert await changed_since(before) == []


async def test_what_a_command_of_the_run_committed_is_listed_but_not_my_work_in_that_commit(
    repo: Path, git: Git
) -> None:
    write(repo / "b.txt", "mine\n")
    before = await inspect(repo)
    write(repo / "a.txt", "run\n")
    git(repo, "commit", "-q", "-am", "by a command")
    assert await changed_since(before) == [repo / "a.txt"]


async def test_a_first_commit_made_by_the_run_is_listed(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q")
    before = await inspect(tmp_path)
    write(tmp_path / "a", "run\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "x")
    assert await changed_since(before) == [tmp_path / "a"]


async def test_the_ledger_adds_what_git_does_not_see(repo: Path, tmp_path: Path) -> None:
    before = await inspect(repo)
    ignored = write(repo / "x.log", "run\n")
    assert await changed_since(before, [ignored]) == [ignored]
    nowhere = await inspect(tmp_path)
    assert await changed_since(nowhere, [tmp_path / "z", tmp_path / "y"]) == [tmp_path / "y", tmp_path / "z"]


async def test_a_run_in_a_subfolder_sees_its_changes_elsewhere(repo: Path) -> None:
    before = await inspect(repo / "src")
    write(repo / "b.txt", "run\n")
    assert await changed_since(before) == [repo / "b.txt"]


def test_files_beyond_the_bound_are_marked_without_reading_them(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    write(tmp_path / "small", "x")
    marks = fingerprints(tmp_path, [DirtyPath("huge"), DirtyPath("small"), DirtyPath("none")])
    assert marks["huge"].startswith("stat ")
    assert marks["small"].startswith("file ")
    assert marks["none"] == "absent"
