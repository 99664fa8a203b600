"""Which settings of a repository make git start a program although it is only asked to read.

What is said is compared with what the real git does.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.permissions.gate import decide
from agent.permissions.repositories import folder_of_call, program_named_by, repository_of
from agent.permissions.rules import Rules
from tests.repo.lacking import WAYS, lack
from tests.repo.test_untrusted_repository import SETTINGS

Git = Callable[..., None]
READING = (("status",), ("diff",), ("log", "-p"), ("show", "HEAD"), ("blame", "a.txt"), ("grep", "a"))
HARMLESS = {
    "none": {},
    "what-clone-writes": {
        "remote.origin.url": "ssh://x/y",
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        "branch.main.merge": "refs/heads/main",
    },
    "built-in-monitor": {"core.fsmonitor": "true"},
    "large-files": {
        "filter.lfs.clean": "git-lfs clean -- %f",
        "filter.lfs.smudge": "git-lfs smudge -- %f",
        "filter.lfs.process": "git-lfs filter-process",
        "filter.lfs.required": "true",
    },
    "partial-clone": {
        "remote.origin.url": "https://x/y",
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
    },
    "hooks-of-the-project": {"core.hooksPath": ".husky"},
    "odd-text": {"user.name": 'A "quoted" # name ; \\ ü', "alias.l": "!f() { git log; }; f"},
}


@pytest.fixture
def git(tmp_path: Path) -> Git:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")

    def run(folder: Path, *arguments: str, check: bool = True) -> None:
        command = ("git", *(who if arguments[0] == "commit" else ()), *arguments)
        subprocess.run(command, cwd=folder, env=environment, check=check, capture_output=True)

    return run


@pytest.fixture
def repo(tmp_path: Path, git: Git) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "--template=")
    (folder / "a.txt").write_text("a\n", encoding="utf-8")
    (folder / ".gitattributes").write_text("* filter=x diff=x merge=x\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def started(repo: Path, git: Git, settings: dict[str, str]) -> bool:
    """Whether a reading git starts a program by these settings."""
    marker, program = repo.parent / "started", repo.parent / "program"
    program.write_text(f"#!/bin/sh\n: > {marker}\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    hooks = repo.parent / "hooks"
    hooks.mkdir()
    (hooks / "post-index-change").symlink_to(program)
    included = repo.parent / "included"
    included.write_text(f"[core]\n\tfsmonitor = {program}\n", encoding="utf-8")
    for key, value in settings.items():
        real = value.replace("PROGRAM", str(program)).replace("HOOKS", str(hooks))
        git(repo, "config", key, real.replace("INCLUDED", str(included)))
    (repo / "a.txt").write_text("b\n", encoding="utf-8")
    for arguments in READING:
        os.utime(repo / ".gitattributes", ns=(1, 1))
        git(repo, *arguments, check=False)
    return marker.exists()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_every_program_that_git_starts_is_named(repo: Path, git: Git, settings: dict[str, str]):
    if started(repo, git, settings):
        assert program_named_by(repo / ".git")


@pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS)
def test_a_program_that_is_asked_for_a_lacking_object_is_named(
    repo: Path, git: Git, tmp_path: Path, settings: dict[str, str]
):
    lack(repo, tmp_path / "started", settings)
    git(repo, "status", check=False)
    assert (tmp_path / "started").exists()
    assert program_named_by(repo / ".git")


@pytest.mark.parametrize("settings", HARMLESS.values(), ids=HARMLESS)
def test_settings_of_everyday_repositories_name_none(repo: Path, git: Git, settings: dict[str, str]):
    for key, value in settings.items():
        git(repo, "config", key, value)
    assert program_named_by(repo / ".git") == ""


@pytest.mark.parametrize(
    "text",
    [
        "[CORE]FSMonitor=./x",
        "[core]\n\tbare = false\n\tfsmonitor = \\\n./x",
        '[filter "a]b"] clean = x',
        "[diff.x]\n textconv = x",
        '\ufeff[include]\npath = "x"',
        "[core]\nfsmonitor = true # ./x",
        "[core\nfsmonitor = x",
        "[user]\n# \\\n[core]\nfsmonitor = ./x",
        "[user]\nname = a ; \\\n[core]\nfsmonitor = ./x",
        "[core]\nx = a\x85[user]\nfsmonitor = ./x",
    ],
)
def test_odd_spellings_are_seen(repo: Path, text: str):
    (repo / ".git" / "config").write_text(text, encoding="utf-8")
    assert program_named_by(repo / ".git")


def test_the_program_of_a_work_trees_repository_is_named(repo: Path, git: Git):
    git(repo, "worktree", "add", "-q", "../tree")
    tree = repo.parent / "tree"
    assert program_named_by(tree / ".git") == ""
    git(repo, "config", "core.fsmonitor", "./x")
    assert program_named_by(tree / ".git") == "core.fsmonitor"


def test_a_hook_that_follows_each_look_is_named(repo: Path):
    hook = repo / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\n", encoding="utf-8")
    assert program_named_by(repo / ".git") == ""
    hook.chmod(0o755)
    assert program_named_by(repo / ".git") == "hooks/post-index-change"


def test_settings_that_are_a_pipe_are_not_waited_for(repo: Path):
    (repo / ".git" / "config").unlink()
    os.mkfifo(repo / ".git" / "config")
    assert program_named_by(repo / ".git")


def test_the_last_of_several_folders_counts(repo: Path):
    bare = repo / "sub" / "bare"
    bare.mkdir(parents=True)
    (bare / "HEAD").touch()
    folder = folder_of_call(["git", "-C", "sub", "-C", "bare", "status"], repo)
    assert repository_of(folder, repo) == bare
    assert repository_of(repo / "sub", repo) == repo / ".git"


@pytest.mark.parametrize(
    ("mode", "verdict"), [("ask", "ask"), ("plan", "ask"), ("accept-edits", "allow"), ("auto", "allow")]
)
def test_a_reading_git_asks_where_the_code_of_the_repository_may_not_run_either(
    repo: Path, git: Git, mode, verdict: str
):
    git(repo, "config", "core.fsmonitor", "./x")
    made = decide(
        "shell",
        "execute",
        {"command": "git status"},
        workspace=repo,
        mode=mode,
        rules=Rules(),
        headless=False,
    )
    assert made.verdict == verdict
