"""Linked work trees: a folder and a branch of its own for each of several tasks in one repository.

Whoever asks for one owns it. The person's checkout, its index and its branch are not touched, and no work
that is not committed is ever removed.
"""

import os
from pathlib import Path

from agent.core.errors import AgentError, UsageError
from agent.repo.git import without_local_filters
from agent.repo.git_process import Answer, ask
from agent.repo.git_write import nul_ended

_CHECKOUT_SECONDS = 600.0
_COMMIT_SECONDS = 120.0


def branch_exists(root: Path, name: str) -> bool:
    """Whether there is a branch `name`, or one below it, so that it cannot be made."""
    listing = ask(root, ["for-each-ref", "--count=1", "--format=x", f"refs/heads/{name}"])
    return bool(listing.output.strip())


def is_branch(root: Path, name: str) -> bool:
    """Whether there is a branch of exactly this name."""
    return ask(root, ["show-ref", "--verify", "--quiet", f"refs/heads/{name}"]).code == 0


def require_branch_name(root: Path, name: str) -> None:
    """Raises UsageError for a name that no new branch can have."""
    if name.startswith("-") or ask(root, ["check-ref-format", f"refs/heads/{name}"]).code != 0:
        raise UsageError(f"{name!r} is not a valid branch name", "git help check-ref-format has the rules")
    parents = [name.rsplit("/", depth)[0] for depth in range(1, name.count("/") + 1)]
    for taken in parents:
        if is_branch(root, taken):
            raise UsageError(
                f"the branch {name} cannot be made, because there is a branch {taken}", "choose another name"
            )
    if branch_exists(root, name):
        raise UsageError(f"the branch {name} exists already", "choose another name")


def add_worktree(root: Path, folder: Path, branch: str, commit: str) -> None:
    """Checks `commit` out in the new folder `folder`, on `branch`, which is made unless it exists.

    Raises:
        AgentError: git refused, the disk is full, or it took longer than ten minutes.
    """
    words = ["worktree", "add", "--quiet"]
    named = [str(folder), branch] if is_branch(root, branch) else ["-b", branch, str(folder), commit]
    overrides = without_local_filters(root, os.environ)
    _done(ask(root, [*words, *named], overrides=overrides, seconds=_CHECKOUT_SECONDS), "worktree add")


def is_worktree(folder: Path) -> bool:
    """Whether `folder` is the top of a work tree that git can use."""
    answer = ask(folder, ["rev-parse", "--show-toplevel"]) if folder.is_dir() else None
    if answer is None or answer.code != 0:
        return False
    return Path(os.fsdecode(answer.output).rstrip("\n")).resolve() == folder.resolve()


def remove_worktree(root: Path, folder: Path) -> bool:
    """Removes a work tree that holds nothing that is not committed; its branch stays.

    One whose folder is gone already is forgotten, so that its branch can be used elsewhere.

    Returns:
        Whether it is gone. Files that git ignores do not keep it.
    """
    overrides = without_local_filters(root, os.environ)
    answer = ask(root, ["worktree", "remove", str(folder)], overrides=overrides, seconds=_CHECKOUT_SECONDS)
    return answer.code == 0


def delete_unused_branch(root: Path, name: str, commit: str) -> bool:
    """Deletes a branch of ours that is checked out nowhere and still points at `commit`.

    Returns:
        Whether it is gone.
    """
    where = ask(root, ["for-each-ref", "--format=%(worktreepath)", f"refs/heads/{name}"])
    if where.code != 0 or where.output.strip():
        return False
    # The id at the end makes git itself refuse if the branch has moved meanwhile.
    return ask(root, ["update-ref", "-d", f"refs/heads/{name}", commit]).code == 0


def discard_unused_worktree(root: Path, folder: Path) -> None:
    """Removes a work tree of ours in which nothing was begun, also one that was only half made."""
    ask(root, ["worktree", "remove", "--force", "--force", str(folder)], seconds=_CHECKOUT_SECONDS)


def commit_everything(folder: Path, message: str) -> str | None:
    """Commits all that differs from the last commit in a work tree of ours; None where nothing does.

    Of other repositories in it, it is the commit that they are at.

    Raises:
        AgentError: git refused.
    """
    overrides = without_local_filters(folder, os.environ)
    links = _links(folder)
    # What was changed in another repository would be looked at by a git that takes filters from its settings.
    without = [f":(top,exclude,literal){link}" for link in links]
    words = ["add", "-A", "--pathspec-from-file=-", "--pathspec-file-nul"]
    data = nul_ended([":(top)", *without])
    _done(ask(folder, words, overrides=overrides, data=data, seconds=_COMMIT_SECONDS), "add")
    at = nul_ended(links)
    words = ["update-index", "-z", "--add", "--remove", "--stdin"]
    _done(ask(folder, words, overrides=overrides, data=at, seconds=_COMMIT_SECONDS), "update-index")
    if ask(folder, ["diff", "--cached", "--quiet"], overrides=overrides).code == 0:
        return None
    words = ["commit", "--quiet", "--no-verify", "-m", message]
    _done(ask(folder, words, overrides=overrides, seconds=_COMMIT_SECONDS), "commit")
    return head_of(folder)


def _links(folder: Path) -> list[str]:
    """The other repositories in a work tree that its index knows."""
    listing = ask(folder, ["ls-files", "--stage", "-z", "--full-name", ":(top)"], seconds=_COMMIT_SECONDS)
    entries = os.fsdecode(listing.output).split("\0")
    return sorted({entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")})


def head_of(folder: Path) -> str | None:
    """The id of the last commit, None before the first."""
    answer = ask(folder, ["rev-parse", "--verify", "--quiet", "HEAD"])
    return answer.output.decode("ascii", "replace").strip() or None


def _done(answer: Answer, command: str) -> None:
    if answer.code != 0:
        raise AgentError(f"git {command} failed: {answer.first_error}")
