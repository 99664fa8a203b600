"""The only door to git: what a repository is like, what a run changed, its branch and its commit.

Nothing here discards anything: no checkout, reset, stash or clean. Questions go to plain `git`
processes (see `git_process`), because they are on the way to the first request. Commits and branches go
through GitPython's command layer, imported where it is used; its own readers of refs and objects are not
used, because they know neither clean filters nor reftables nor SHA-256 repositories.

No hooks run, commits are not signed, and git never asks for anything.
"""

import asyncio
import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent.core.errors import AgentError, UsageError
from agent.core.regular_file import read_regular
from agent.repo.git_process import (
    MISSING,
    ask,
    ask_for_names,
)
from agent.repo.git_write import Plumbing, nul_ended, update_index, write_trees
from agent.repo.selection import sort_out
from agent.repo.state import RepoState, fingerprints, has_changed, operation_in, parse_status

_IDENTITY_HINT = (
    'tell git who you are: git config --global user.name "Your Name" && '
    "git config --global user.email you@example.com"
)
_FILTERED = "a program that this repository configures as its filter would run; commit it yourself"


@dataclass(frozen=True, slots=True)
class CommitResult:
    """`commit` is None when there was nothing to commit.

    `committed` are paths from the repository's root; `skipped` pairs a path with the reason why it is not
    in the commit. `note` is one line on something that a person should know.
    """

    commit: str | None
    committed: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    note: str = ""


async def inspect(
    workspace: Path, *, environment: Mapping[str, str] | None = None, with_fingerprints: bool = True
) -> RepoState:
    """What the repository around `workspace` is like. Never raises: `problem` says what is in the way.

    Without fingerprints no file is read, and `changed_since` has nothing to compare with.
    """
    variables = os.environ if environment is None else environment
    return await asyncio.to_thread(_inspect, workspace, variables, with_fingerprints=with_fingerprints)


async def changed_since(before: RepoState, ledger_changed: Iterable[Path] = ()) -> list[Path]:
    """Absolute paths that changed since `before` was taken, those in `ledger_changed` included.

    A file that was dirty before and has the same content now is not among them. Ignored files are only
    listed if the ledger knows them, and so are all files when there is no repository.
    """
    return await asyncio.to_thread(_changed_since, before, list(ledger_changed))


async def require_ready(workspace: Path, *, branch: str | None = None, commit: bool = False) -> None:
    """Makes sure, before any work is done, that `create_branch` and `commit_paths` will not refuse.

    Raises:
        UsageError: there is no repository, a merge or rebase waits, the name of the branch is taken or
            invalid, or git does not know who would commit.
    """
    await asyncio.to_thread(_require_ready, workspace, branch, commit)


async def create_branch(workspace: Path, name: str) -> None:
    """Makes the branch `name` at the present commit and switches to it; index and files stay as they are.

    Before the first commit only the name of the coming branch changes.

    Raises:
        UsageError: there is no repository, the name is taken or invalid, or a merge or rebase waits.
    """
    await asyncio.to_thread(_create_branch, workspace, name)


async def commit_paths(
    workspace: Path,
    paths: Iterable[Path],
    message: str,
    before: RepoState | None = None,
    *,
    dirty_before: Iterable[Path] = (),
) -> CommitResult:
    """Commits the present content of `paths`, and nothing else, on top of HEAD.

    Paths are absolute or from the repository's root. A path that was dirty in `before`, the state before
    the run, or is in `dirty_before` holds work of the person and is skipped; so is one with staged changes
    that differ from its content now, an ignored one and one in another repository. The index changes only
    for committed paths. No hooks run.

    Raises:
        UsageError: there is no repository, git does not know who commits, the message is empty, or it is
            not known what was dirty before.
        AgentError: git refused; HEAD, index and files are as before.
    """
    theirs = list(dirty_before)
    if before is not None and before.is_repo:
        if before.problem:
            raise UsageError(
                f"nothing was committed, because your own changes are not known: {before.problem}"
            )
        theirs += before.dirty_paths()
    return await asyncio.to_thread(_commit_paths, workspace, list(paths), message, theirs)


def list_repo_files(folder: Path, limit: int) -> list[str] | None:
    """Up to `limit` files below `folder` that git tracks or would track, by their name from there.

    Deleted files may be among them, submodules are named like files. None where git cannot tell. Waits for
    at most 10 seconds.
    """
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    return ask_for_names(folder, listing, limit)


def _inspect(workspace: Path, environment: Mapping[str, str], *, with_fingerprints: bool = True) -> RepoState:
    if not workspace.is_dir():
        return RepoState(workspace=workspace, problem=f"there is no folder {workspace}")
    place = locate(workspace, environment)
    if place.problem or place.is_bare:
        return place
    # A configuration that came with the files could name programs as filters; status would start them.
    status = ask(
        workspace,
        [
            "status",
            "--porcelain=v2",
            "--branch",
            "-z",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
            "--no-ahead-behind",
        ],
        environment=environment,
        overrides=without_local_filters(workspace, environment, (place.git_dir, place.common_dir)),
    )
    if status.code != 0:
        return replace(place, problem=f"git cannot tell the state of {place.root}: {status.first_error}")
    parsed = parse_status(status.output)
    return replace(
        place,
        head=parsed.head,
        branch=parsed.branch,
        dirty=parsed.dirty,
        operation=operation_in(place.git_dir),
        fingerprints=fingerprints(place.root, parsed.dirty) if with_fingerprints else {},
    )


def locate(workspace: Path, environment: Mapping[str, str]) -> RepoState:
    """Where the repository is, without its status. Waits for a git process."""
    questions = ["--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir"]
    answer = ask(
        workspace,
        ["rev-parse", *questions, "--show-toplevel"],
        environment=environment,
    )
    lines = os.fsdecode(answer.output).splitlines()
    if len(lines) < len(questions):
        return RepoState(workspace=workspace, problem=_why_not(workspace, answer.code, answer.error))
    place = RepoState(
        workspace=workspace,
        is_repo=True,
        is_bare=lines[0] == "true",
        git_dir=Path(lines[2]),
        common_dir=(workspace / lines[3]).resolve(),
    )
    if place.is_bare:
        return replace(place, problem=f"{workspace} is a bare repository, which has no files to work on")
    if lines[1] != "true" or answer.code != 0 or len(lines) < 5:
        return replace(place, problem=f"{workspace} is inside git's own folder, not in a work tree")
    root = Path(lines[4])
    if not workspace.resolve().is_relative_to(root.resolve()):
        return replace(place, problem=f"the repository says that its files are in {root}, not {workspace}")
    return replace(place, root=root)


def _why_not(workspace: Path, code: int, error: str) -> str:
    if code == 127:
        return error or MISSING
    if "dubious ownership" in error:
        named = re.search(r"repository at '(.+)'", error)
        root = named[1] if named else str(workspace)
        return (
            f"git does not trust the repository {root}, because it belongs to another user; "
            f"to trust it: git config --global --add safe.directory {shlex.quote(root)}"
        )
    if "not a git repository" in error:
        return f"{workspace} is not in a git repository"
    lines = error.strip().splitlines() or [f"git stopped with exit status {code}"]
    return f"git cannot read the repository of {workspace}: {lines[0].removeprefix('fatal: ')}"


def without_local_filters(
    workspace: Path, environment: Mapping[str, str], git_folders: Sequence[Path] = ()
) -> list[tuple[str, str]]:
    """Settings that switch off the filter programs which the repository's own configuration names.

    Waits for a git process, unless `git_folders` are all folders in which this repository can have settings,
    and what is in them shows that there is nothing to ask.
    """
    if git_folders and all(map(_names_no_filter, git_folders)):
        return []
    found = ask(
        workspace,
        ["config", "--show-scope", "--name-only", "-z", "--get-regexp", r"^filter\."],
        environment=environment,
    )
    words = [os.fsdecode(word) for word in found.output.split(b"\0")]
    local = [
        key for scope, key in zip(words[::2], words[1::2], strict=False) if scope in ("local", "worktree")
    ]
    drivers = {key.rpartition(".")[0] for key in local}
    return [
        (f"{driver}.{setting}", value)
        for driver in sorted(drivers)
        for setting, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    ]


def _names_no_filter(git_folder: Path) -> bool:
    """Whether a folder of git's names no filter in its configuration, nor other files that could."""
    for name in ("config", "config.worktree"):
        try:
            settings = read_regular(git_folder / name).lower()
        except FileNotFoundError:
            continue
        except OSError:
            return False
        if b"filter" in settings or b"include" in settings:
            return False
    return True


def _changed_since(before: RepoState, ledger_changed: Sequence[Path]) -> list[Path]:
    changed = set(ledger_changed)
    if not before.is_repo or before.problem:
        return sorted(changed)
    after = _inspect(before.workspace, os.environ, with_fingerprints=False)
    candidates = {entry.path for entry in after.dirty} | set(_committed_between(before, after))
    changed |= {before.root / path for path in candidates if path not in before.fingerprints}
    changed |= {
        before.root / path
        for path, mark in before.fingerprints.items()
        if has_changed(before.root, path, mark)
    }
    return sorted(changed)


def _committed_between(before: RepoState, after: RepoState) -> list[str]:
    """Paths that commits made since `before` touched, for instance by a command of the run."""
    if after.head is None or after.head == before.head:
        return []
    if before.head is None:
        arguments = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", after.head]
    else:
        arguments = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", before.head, after.head]
    answer = ask(before.root, arguments)
    return [os.fsdecode(name) for name in answer.output.split(b"\0") if name] if answer.code == 0 else []


def _require_ready(workspace: Path, branch: str | None, commit: bool) -> None:
    state = _usable(workspace)
    if branch:
        _new_reference(state, branch)
    if commit:
        _require_identity(state)


def _new_reference(state: RepoState, branch: str) -> str:
    """The full name of a branch that can be made. Raises UsageError."""
    reference = f"refs/heads/{branch}"
    odd = branch.startswith("-") or branch == "HEAD" or not branch.isprintable()
    if odd or ask(state.root, ["check-ref-format", reference]).code != 0:
        raise UsageError(f"{branch!r} is not a valid branch name", "git help check-ref-format has the rules")
    if ask(state.root, ["show-ref", "--verify", "--quiet", reference]).code == 0 or branch == state.branch:
        there = "you are on it: leave out --branch" if branch == state.branch else f"`git switch {branch}`"
        alone = "" if branch == state.branch else " and no --branch"
        raise UsageError(
            f"the branch {branch} exists already", f"{there}{alone} to work there, or choose a new name"
        )
    return reference


def _require_identity(state: RepoState) -> None:
    for role in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        if ask(state.root, ["var", role]).code != 0:
            raise UsageError("git does not know who you are, so it cannot commit", _IDENTITY_HINT)


def _create_branch(workspace: Path, name: str) -> None:
    state = _usable(workspace)
    reference = _new_reference(state, name)
    git = Plumbing(state)
    if state.head is None:
        git.run("symbolic-ref", "HEAD", reference)
        return
    here = state.branch or state.head
    git.run("update-ref", "-m", f"branch: Created from {here}", reference, state.head, "0" * len(state.head))
    try:
        git.run("symbolic-ref", "-m", f"checkout: moving from {here} to {name}", "HEAD", reference)
    except AgentError:
        git.run("update-ref", "-d", reference, state.head)
        raise


def _commit_paths(
    workspace: Path, paths: Sequence[Path], message: str, dirty_before: Sequence[Path]
) -> CommitResult:
    message = message.encode("utf-8", "replace").decode("utf-8").replace("\0", "").strip()
    if not message:
        raise UsageError("a commit needs a message")
    state = _usable(workspace)
    overrides = without_local_filters(state.root, os.environ, (state.git_dir, state.common_dir))
    wanted, skipped = sort_out(state, paths, dirty_before, partial(_ignored, state))
    filtered = _filtered(state, wanted, overrides)
    skipped += tuple((name, _FILTERED) for name in wanted if name in filtered)
    wanted = [name for name in wanted if name not in filtered]
    if not wanted:
        return CommitResult(None, skipped=skipped, note="nothing to commit")
    _require_identity(state)
    with tempfile.TemporaryDirectory(prefix="agent-index-") as scratch:
        git = Plumbing(state, Path(scratch) / "index", overrides=overrides)
        old_tree, new_tree = write_trees(git, state, wanted)
        if new_tree == old_tree:
            return CommitResult(None, skipped=skipped, note="nothing to commit")
        parents = ["-p", state.head] if state.head else []
        commit = git.run("commit-tree", new_tree, *parents, data=f"{message}\n".encode())
        subject = f"commit{'' if state.head else ' (initial)'}: {message.splitlines()[0]}"
        git.run("update-ref", "-m", subject, "HEAD", commit, state.head or "0" * len(commit))
    note = update_index(state, old_tree, new_tree)
    if state.is_detached and not note:
        note = "the commit is on no branch, because HEAD is detached"
    return CommitResult(commit, tuple(sorted(wanted)), skipped, note)


def _ignored(state: RepoState, names: Sequence[str]) -> set[str]:
    if not names:
        return set()
    # A name that begins with a colon would be taken for a pattern.
    data = nul_ended(f"./{name}" for name in names)
    answer = ask(state.root, ["check-ignore", "-z", "--stdin"], data=data)
    return {os.fsdecode(name).removeprefix("./") for name in answer.output.split(b"\0") if name}


def _filtered(state: RepoState, names: Sequence[str], overrides: Sequence[tuple[str, str]]) -> set[str]:
    """Files whose content goes through a program that the repository's own configuration names."""
    drivers = {key.removeprefix("filter.").rpartition(".")[0] for key, _ in overrides}
    if not drivers or not names:
        return set()
    answer = ask(state.root, ["check-attr", "-z", "--stdin", "filter"], data=nul_ended(names))
    words = [os.fsdecode(word) for word in answer.output.split(b"\0")]
    return {name for name, driver in zip(words[::3], words[2::3], strict=False) if driver in drivers}


def _usable(workspace: Path) -> RepoState:
    """The repository around `workspace`, ready for a branch or a commit.

    Raises:
        UsageError: it is not.
    """
    state = _inspect(workspace, os.environ, with_fingerprints=False)
    if state.problem:
        raise UsageError(state.problem)
    if state.operation:
        raise UsageError(f"a {state.operation} is in progress in {state.root}", "finish or abort it first")
    return state
