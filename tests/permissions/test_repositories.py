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
READING = (
    ("status",),
    ("diff",),
    ("log", "-p"),
    ("log", "-m", "-p"),
    ("show", "HEAD"),
    ("blame", "a.txt"),
    ("grep", "a"),
)
SIGNED = """tree {tree}
{parents}
author a <a@example.org> 1700000000 +0000
committer a <a@example.org> 1700000000 +0000
gpgsig -----BEGIN PGP SIGNATURE-----
 iQ
 -----END PGP SIGNATURE-----

signed
"""
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


def sign_a_merge(repo: Path) -> None:
    """Of two commits that change the same file, with text where a signature would be."""

    def git(*words: str, text: str = "") -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return subprocess.run(
            ("git", *who, *words), cwd=repo, check=True, capture_output=True, encoding="utf-8", input=text
        ).stdout.strip()

    def commit(text: str) -> str:
        (repo / "a.txt").write_text(text, encoding="utf-8")
        git("add", "a.txt")
        return git("commit-tree", git("write-tree"), "-p", "HEAD", text="x")

    parents = [f"parent {commit(text)}" for text in ("b\n", "c\n")]
    signed = SIGNED.format(tree=git("write-tree"), parents="\n".join(parents))
    git("reset", "-q", "--hard", git("hash-object", "-t", "commit", "-w", "--stdin", text=signed))


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
    sign_a_merge(repo)
    if started(repo, git, settings):
        assert program_named_by(repo / ".git")


@pytest.mark.parametrize("name", ["signatures-in-logs", "signatures-in-formats", "merging-again"])
def test_the_commit_of_the_test_before_is_one_that_programs_are_asked_about(repo: Path, git: Git, name: str):
    sign_a_merge(repo)
    assert started(repo, git, SETTINGS[name])


@pytest.mark.parametrize("version", ["2", "4"])
def test_a_program_that_git_starts_for_a_submodule_is_named(repo: Path, git: Git, version: str):
    inner = repo / "deep" / "sub ü"
    inner.mkdir(parents=True)
    git(inner, "init", "-q", "--template=")
    git(inner, "commit", "-qm", "x", "--allow-empty")
    git(repo, "config", "index.version", version)
    git(repo, "add", ".")
    git(repo, "update-index", "--index-version", version)
    assert (program_named_by(repo / ".git") == "") == (version == "2")
    marker, program = repo.parent / "started", repo.parent / "program"
    program.write_text(f"#!/bin/sh\n: > {marker}\n", encoding="utf-8")
    program.chmod(0o755)
    git(inner, "config", "core.fsmonitor", str(program))
    git(repo, "status")
    assert marker.exists()
    named = program_named_by(repo / ".git")
    assert named == ("core.fsmonitor of the submodule sub ü" if version == "2" else "what cannot be read")


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
