"""Branches and commits of a run, with a person's own work lying around."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.errors import AgentError, UsageError
from agent.repo.git import commit_paths, create_branch, inspect
from tests.repo.conftest import Git


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def busy(repo: Path, git: Git) -> Path:
    """A repository with staged, unstaged, untracked, deleted and renamed work of a person."""
    write(repo / "b.txt", "staged\n")
    write(repo / "added.txt", "staged too\n")
    git(repo, "add", "b.txt", "added.txt")
    write(repo / "b.txt", "staged\nand not staged\n")
    write(repo / "notes.txt", "untracked\n")
    return repo


def own_work(git: Git, repo: Path) -> tuple[str, ...]:
    return (
        git(repo, "status", "--porcelain=v2"),
        git(repo, "diff", "--cached"),
        git(repo, "diff"),
        git(repo, "ls-files", "--stage"),
        git(repo, "stash", "list"),
    )


async def test_a_branch_is_made_and_switched_to_without_touching_any_work(busy: Path, git: Git) -> None:
    before, head = own_work(git, busy), git(busy, "rev-parse", "HEAD")
    index = (busy / ".git" / "index").read_bytes()
    await create_branch(busy / "src", "agent/fix-1")
    assert git(busy, "branch", "--show-current").strip() == "agent/fix-1"
    assert git(busy, "rev-parse", "HEAD") == head
    assert own_work(git, busy) == before
    assert (busy / ".git" / "index").read_bytes() == index


async def test_going_back_to_the_branch_before_works_as_after_git_switch(repo: Path, git: Git) -> None:
    await create_branch(repo, "other")
    git(repo, "switch", "-q", "-")
    assert git(repo, "branch", "--show-current").strip() == "main"


async def test_an_existing_branch_is_refused(repo: Path, git: Git) -> None:
    git(repo, "branch", "taken")
    with pytest.raises(UsageError, match="branch taken exists already") as caught:
        await create_branch(repo, "taken")
    assert caught.value.hint == "`git switch taken` and no --branch to work there, or choose a new name"
    with pytest.raises(UsageError, match="branch main exists already") as caught:
        await create_branch(repo, "main")
    assert caught.value.hint == "you are on it: leave out --branch to work there, or choose a new name"
    assert git(repo, "branch", "--show-current").strip() == "main"


@pytest.mark.parametrize(
    "name", ["", "-f", "a b", "a..b", "@{-1}", "x.lock", "HEAD", "a\nb", "a:b", "/a", "a\0b", "\ud800"]
)
async def test_an_invalid_name_is_refused(repo: Path, git: Git, name: str) -> None:
    before = git(repo, "for-each-ref")
    with pytest.raises(UsageError, match="not a valid branch name"):
        await create_branch(repo, name)
    assert git(repo, "for-each-ref") == before


async def test_a_name_below_an_existing_branch_is_one_line(repo: Path) -> None:
    with pytest.raises(AgentError, match="git update-ref failed") as refusal:
        await create_branch(repo, "main/sub")
    assert "\n" not in refusal.value.message


async def test_a_branch_before_the_first_commit_renames_what_is_coming(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path / "a", "x")
    git(tmp_path, "add", "a")
    await create_branch(tmp_path, "work")
    assert git(tmp_path, "symbolic-ref", "HEAD").strip() == "refs/heads/work"
    assert git(tmp_path, "status", "--porcelain") == "A  a\n"
    with pytest.raises(UsageError, match="exists already"):
        await create_branch(tmp_path, "work")


async def test_nothing_is_done_while_a_merge_waits(repo: Path) -> None:
    write(repo / ".git" / "MERGE_HEAD", "0" * 40 + "\n")
    with pytest.raises(UsageError, match="a merge is in progress"):
        await create_branch(repo, "new")
    with pytest.raises(UsageError, match="a merge is in progress"):
        await commit_paths(repo, [repo / "a.txt"], "message")


async def test_a_commit_holds_the_paths_and_leaves_all_other_work_as_it_was(busy: Path, git: Git) -> None:
    before = own_work(git, busy)
    write(busy / "a.txt", "by the run\n")
    write(busy / "new" / "file.txt", "by the run\n")
    (busy / "src" / "c.txt").unlink()
    paths = [busy / "a.txt", busy / "new" / "file.txt", busy / "src" / "c.txt"]
    result = await commit_paths(busy, paths, "Do it\n\n# all of it é\n")
    assert result.committed == ("a.txt", "new/file.txt", "src/c.txt")
    assert (result.skipped, result.note) == ((), "")
    assert git(busy, "rev-parse", "HEAD").strip() == result.commit
    assert git(busy, "show", "--format=%B", "--name-status", "--no-renames", "HEAD") == (
        "Do it\n\n# all of it é\n\n\nM\ta.txt\nA\tnew/file.txt\nD\tsrc/c.txt\n"
    )
    assert own_work(git, busy)[:3] == before[:3]
    assert [line for line in own_work(git, busy)[3].splitlines() if "b.txt" in line or "added" in line] == [
        line for line in before[3].splitlines() if "b.txt" in line or "added" in line
    ]


async def test_a_file_with_my_work_in_it_is_not_committed(busy: Path, git: Git) -> None:
    before = await inspect(busy)
    write(busy / "b.txt", "mine and the run's\n")
    write(busy / "notes.txt", "mine and the run's\n")
    write(busy / "a.txt", "by the run\n")
    mine = own_work(git, busy)[1]
    paths = [busy / "b.txt", busy / "notes.txt", busy / "a.txt"]
    result = await commit_paths(busy, paths, "x", before)
    assert result.committed == ("a.txt",)
    assert dict(result.skipped) == {
        "b.txt": "it had uncommitted changes of yours before",
        "notes.txt": "it had uncommitted changes of yours before",
    }
    assert own_work(git, busy)[1] == mine


async def test_a_file_that_somebody_changed_during_the_run_can_be_left_out(repo: Path) -> None:
    write(repo / "a.txt", "mine and the run's\n")
    result = await commit_paths(repo, [repo / "a.txt"], "x", dirty_before=[repo / "a.txt"])
    assert (result.commit, result.committed) == (None, ())


async def test_nothing_is_committed_when_my_own_changes_are_not_known(repo: Path) -> None:
    unknown = replace(await inspect(repo), problem="git status took longer than 20 seconds")
    write(repo / "a.txt", "by the run\n")
    with pytest.raises(UsageError, match="your own changes are not known"):
        await commit_paths(repo, [repo / "a.txt"], "x", unknown)


async def test_what_i_staged_during_the_run_is_not_overwritten(repo: Path, git: Git) -> None:
    write(repo / "a.txt", "mine\n")
    git(repo, "add", "a.txt")
    write(repo / "a.txt", "by the run\n")
    before = own_work(git, repo)
    result = await commit_paths(repo, [repo / "a.txt"], "x")
    assert result.commit is None
    assert result.skipped == (("a.txt", "you have staged another version of it"),)
    assert own_work(git, repo) == before


async def test_what_the_run_staged_itself_is_committed(repo: Path, git: Git) -> None:
    write(repo / "a.txt", "by the run\n")
    write(repo / "new.txt", "by the run\n")
    git(repo, "add", ".")
    result = await commit_paths(repo, [repo / "a.txt", repo / "new.txt"], "x")
    assert result.committed == ("a.txt", "new.txt")
    assert git(repo, "status", "--porcelain") == ""


async def test_a_path_with_everything_that_names_can_hold(repo: Path, git: Git) -> None:
    names = [
        "with space",
        "tab\tand\nnewline",
        '"quoted"',
        ":(glob)*",
        "-n",
        "*",
        "ü",
        os.fsdecode(b"caf\xe9"),
    ]
    paths = [write(repo / name, name.encode("utf-8", "replace").decode()) for name in names]
    result = await commit_paths(repo, paths, "names")
    assert set(result.committed) == set(names)
    assert git(repo, "status", "--porcelain") == ""


async def test_modes_and_links_are_committed_as_they_are(repo: Path, git: Git) -> None:
    (repo / "a.txt").chmod(0o755)
    (repo / "link").symlink_to("b.txt")
    await commit_paths(repo, [repo / "a.txt", repo / "link"], "x")
    tree = git(repo, "ls-tree", "HEAD")
    assert "100755 blob" in next(line for line in tree.splitlines() if line.endswith("a.txt"))
    assert "120000 blob" in next(line for line in tree.splitlines() if line.endswith("link"))
    assert git(repo, "status", "--porcelain") == ""


async def test_a_file_that_became_a_folder_and_back(repo: Path, git: Git) -> None:
    (repo / "a.txt").unlink()
    write(repo / "a.txt" / "inside", "x")
    (repo / "src" / "c.txt").unlink()
    (repo / "src").rmdir()
    write(repo / "src", "a file now")
    paths = [repo / "a.txt", repo / "a.txt" / "inside", repo / "src", repo / "src" / "c.txt"]
    result = await commit_paths(repo, paths, "x")
    assert result.skipped == ()
    assert git(repo, "status", "--porcelain") == ""


async def test_line_ends_are_normalised_as_git_add_would(repo: Path, git: Git) -> None:
    write(repo / ".gitattributes", "*.txt text eol=crlf\n")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "attributes")
    (repo / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    await commit_paths(repo, [repo / "a.txt"], "x")
    assert git(repo, "cat-file", "blob", "HEAD:a.txt") == "one\ntwo\n"
    assert git(repo, "status", "--porcelain") == ""


async def test_ignored_unchanged_and_outside_paths_are_named_with_the_reason(
    repo: Path, tmp_path: Path
) -> None:
    paths = [
        write(repo / "x.log", "x"),
        repo / "b.txt",
        write(tmp_path / "out", "x"),
        repo / ".git" / "config",
    ]
    result = await commit_paths(repo, paths, "x")
    assert (result.commit, result.note) == (None, "nothing to commit")
    assert dict(result.skipped) == {
        "x.log": "git ignores it",
        "b.txt": "it is as in the last commit",
        str(tmp_path / "out"): "it is outside of the repository",
        str(repo / ".git" / "config"): "it is outside of the repository",
    }


async def test_a_file_of_a_repository_inside_is_not_committed_to_the_outer_one(repo: Path, git: Git) -> None:
    (repo / "inner").mkdir()
    git(repo / "inner", "init", "-q")
    result = await commit_paths(repo, [write(repo / "inner" / "x", "x")], "x")
    assert result.skipped == (("inner/x", "it belongs to another repository inside this one"),)


async def test_the_first_commit_leaves_what_i_had_staged(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path / "mine", "x")
    git(tmp_path, "add", "mine")
    result = await commit_paths(tmp_path, [write(tmp_path / "run.txt", "x")], "first")
    assert git(tmp_path, "log", "--format=%s %H").strip() == f"first {result.commit}"
    assert git(tmp_path, "status", "--porcelain") == "A  mine\n"


async def test_a_submodule_and_a_linked_work_tree_get_their_own_commit(
    repo: Path, git: Git, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "--quiet", "add", str(repo), "inner")
    git(outer, "commit", "-q", "-m", "outer")
    git(repo, "worktree", "add", "-q", "-b", "tree", str(tmp_path / "tree"))
    before = git(outer, "rev-parse", "HEAD"), git(repo, "rev-parse", "main")
    for folder in (outer / "inner", tmp_path / "tree"):
        await create_branch(folder, "run")
        result = await commit_paths(folder, [write(folder / "a.txt", "by the run\n")], "inside")
        assert git(folder, "rev-parse", "run").strip() == result.commit
        assert git(folder, "status", "--porcelain") == ""
        git(folder, "switch", "-q", "-c", "next")
        git(folder, "branch", "-q", "-D", "run")
    assert (git(outer, "rev-parse", "HEAD"), git(repo, "rev-parse", "main")) == before


async def test_a_detached_head_is_committed_to_and_said(repo: Path, git: Git) -> None:
    git(repo, "checkout", "-q", "--detach")
    main = git(repo, "rev-parse", "main")
    result = await commit_paths(repo, [write(repo / "a.txt", "x")], "x")
    assert "HEAD is detached" in result.note
    assert git(repo, "rev-parse", "HEAD").strip() == result.commit
    assert git(repo, "rev-parse", "main") == main


async def test_an_unknown_identity_is_one_error_with_both_commands(
    repo: Path, git: Git, own_configuration: Path
) -> None:
    own_configuration.write_text("", encoding="utf-8")
    head = git(repo, "rev-parse", "HEAD")
    with pytest.raises(UsageError, match="does not know who you are") as refusal:
        await commit_paths(repo, [write(repo / "a.txt", "x")], "x")
    assert "git config --global user.name" in refusal.value.hint
    assert "git config --global user.email" in refusal.value.hint
    assert git(repo, "rev-parse", "HEAD") == head


async def test_a_branch_needs_no_identity(repo: Path, git: Git, own_configuration: Path) -> None:
    own_configuration.write_text("", encoding="utf-8")
    await create_branch(repo, "new")
    assert git(repo, "branch", "--show-current").strip() == "new"


async def test_a_sha256_repository_works_like_any_other(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    await commit_paths(tmp_path, [write(tmp_path / "a", "1")], "first")
    await create_branch(tmp_path, "new")
    result = await commit_paths(tmp_path, [write(tmp_path / "a", "2")], "second")
    assert git(tmp_path, "log", "--format=%s", "new").split() == ["second", "first"]
    assert len(result.commit or "") == 64
    assert git(tmp_path, "status", "--porcelain") == ""


async def test_files_outside_of_a_sparse_checkout_stay_in_the_commit(repo: Path, git: Git) -> None:
    git(repo, "sparse-checkout", "set", "--no-cone", "/a.txt")
    assert not (repo / "b.txt").exists()
    await commit_paths(repo, [write(repo / "a.txt", "by the run\n")], "x")
    assert git(repo, "show", "--format=", "--name-status", "HEAD") == "M\ta.txt\n"
    assert git(repo, "status", "--porcelain") == ""


async def test_a_message_with_broken_characters_is_committed(repo: Path, git: Git) -> None:
    await commit_paths(repo, [write(repo / "a.txt", "x")], "odd \ud800 \udc80\u2028message\0")
    assert git(repo, "log", "-1", "--format=%B").strip() == "odd ? ?\u2028message"


async def test_no_hook_runs_and_nothing_is_signed(repo: Path, git: Git) -> None:
    for hook in ("pre-commit", "commit-msg", "post-commit", "post-checkout", "reference-transaction"):
        path = write(repo / ".git" / "hooks" / hook, f"#!/bin/sh\ntouch {repo.parent}/hooked\nexit 1\n")
        path.chmod(0o755)
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "gpg.program", "/bin/false")
    await create_branch(repo, "hooks")
    await commit_paths(repo, [write(repo / "a.txt", "x")], "x")
    assert not (repo.parent / "hooked").exists()


async def test_an_empty_message_is_refused(repo: Path) -> None:
    with pytest.raises(UsageError, match="needs a message"):
        await commit_paths(repo, [repo / "a.txt"], " \n\0")


async def test_a_busy_index_leaves_the_commit_and_says_how_to_go_on(repo: Path, git: Git) -> None:
    write(repo / "a.txt", "by the run\n")
    write(repo / ".git" / "index.lock", "")
    result = await commit_paths(repo, [repo / "a.txt"], "x")
    assert "git add" in result.note
    (repo / ".git" / "index.lock").unlink()
    git(repo, "add", "a.txt")
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "rev-parse", "HEAD").strip() == result.commit


async def test_a_repository_that_cannot_be_written_is_one_error(repo: Path, git: Git) -> None:
    write(repo / "a.txt", "by the run\n")
    head = git(repo, "rev-parse", "HEAD")
    write(repo / ".git" / "HEAD.lock", "")
    with pytest.raises(AgentError, match="git update-ref failed") as refusal:
        await commit_paths(repo, [repo / "a.txt"], "x")
    assert "\n" not in refusal.value.message
    assert git(repo, "rev-parse", "HEAD") == head
    assert git(repo, "status", "--porcelain") == " M a.txt\n"


async def test_variables_of_another_repository_do_not_divert_the_commit(
    repo: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    write(repo / "a.txt", "by the run\n")
    for name, value in {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / "index",
        "GIT_OBJECT_DIRECTORY": other / ".git" / "objects",
    }.items():
        monkeypatch.setenv(name, str(value))
    result = await commit_paths(repo, [repo / "a.txt"], "x")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.delenv(name)
    assert git(repo, "log", "-1", "--format=%H").strip() == result.commit
    assert git(repo, "status", "--porcelain") == ""


async def test_missing_git_is_one_error(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for action in (create_branch(repo, "x"), commit_paths(repo, [repo / "a.txt"], "x")):
        with pytest.raises(UsageError, match="git is not installed"):
            await action
