"""No setting of a repository that came with its files starts a program through our calls of git."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.repo.git import (
    changed_since,
    commit_paths,
    create_branch,
    inspect,
    list_repo_files,
    require_ready,
)
from agent.repo.instructions import find_instructions
from agent.repo.work_tree import TreeLook, copy_index, look, look_at_all, tree_place
from tests.repo.conftest import Git
from tests.repo.lacking import WAYS, lack

PROGRAM = "PROGRAM"
SETTINGS: dict[str, dict[str, str]] = {
    "fsmonitor": {"core.fsmonitor": PROGRAM},
    "fsmonitor-v2": {"core.fsmonitor": PROGRAM, "core.fsmonitorHookVersion": "2"},
    "hooks": {"core.hooksPath": "HOOKS"},
    "ssh": {"core.sshCommand": PROGRAM},
    "pagers": {"core.pager": PROGRAM, "pager.status": PROGRAM, "pager.log": PROGRAM, "pager.diff": PROGRAM},
    "editors": {"core.editor": PROGRAM, "sequence.editor": PROGRAM},
    "ask-pass": {"core.askPass": PROGRAM},
    "diff-external": {"diff.external": PROGRAM},
    "diff-driver": {"diff.x.command": PROGRAM, "diff.x.trustExitCode": "true"},
    "textconv": {"diff.x.textconv": PROGRAM, "diff.x.cachetextconv": "true"},
    "filters": {"filter.x.clean": PROGRAM, "filter.x.smudge": PROGRAM, "filter.x.required": "true"},
    "filter-process": {"filter.x.process": PROGRAM, "filter.x.required": "true"},
    "merge-driver": {"merge.x.driver": PROGRAM, "merge.default": "x"},
    "signing": {"gpg.program": PROGRAM, "commit.gpgSign": "true", "tag.gpgSign": "true"},
    "ssh-signing": {"gpg.format": "ssh", "gpg.ssh.program": PROGRAM, "commit.gpgSign": "true",
                    "gpg.ssh.defaultKeyCommand": PROGRAM},
    "signatures-in-logs": {"log.showSignature": "true", "gpg.program": PROGRAM},
    "signatures-in-formats": {"format.pretty": "%G?", "gpg.program": PROGRAM},
    "merging-again": {"log.diffMerges": "remerge", "merge.x.driver": PROGRAM},
    "credentials": {"credential.helper": f"!{PROGRAM}"},
    "proxy": {"core.gitProxy": PROGRAM},
    "aliases": {"alias.status": f"!{PROGRAM}", "alias.ls-files": f"!{PROGRAM}", "alias.x": f"!{PROGRAM}"},
    "trailers": {"trailer.x.command": PROGRAM, "trailer.x.cmd": PROGRAM},
    "alternates": {"core.alternateRefsCommand": PROGRAM},
    "lazy-objects": {"extensions.partialClone": "origin", "remote.origin.promisor": "true",
                     "remote.origin.url": "ext::PROGRAM %S"},
    "submodules": {"submodule.recurse": "true", "submodule.x.update": f"!{PROGRAM}"},
    "included": {"include.path": "INCLUDED"},
    "interactive": {"interactive.diffFilter": PROGRAM},
}  # fmt: skip
HOOKS = (
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-index-change",
    "post-checkout",
    "reference-transaction",
    "pre-auto-gc",
)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "started"


def arm(repo: Path, git: Git, settings: dict[str, str], marker: Path) -> None:
    """Settings and attributes that would start a program which leaves `marker` behind."""
    program = repo.parent / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {marker}\ncat\n', encoding="utf-8")
    program.chmod(0o755)
    hooks = repo.parent / "hooks"
    for folder in (hooks, repo / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            (folder / name).write_bytes(program.read_bytes())
            (folder / name).chmod(0o755)
    included = repo.parent / "included"
    included.write_text(
        f'[core]\n\tfsmonitor = {program}\n[filter "x"]\n\tclean = {program}\n', encoding="utf-8"
    )
    (repo / ".gitattributes").write_text("* filter=x diff=x merge=x\n", encoding="utf-8")
    git(repo, "add", ".gitattributes")
    for name, real in ((PROGRAM, program), ("HOOKS", hooks), ("INCLUDED", included)):
        settings = {key: value.replace(name, str(real)) for key, value in settings.items()}
    for key, value in settings.items():
        git(repo, "config", key, value)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
async def test_no_setting_starts_a_program(repo: Path, git: Git, marker: Path, settings: dict[str, str]):
    before = await inspect(repo)
    arm(repo, git, settings, marker)
    marker.unlink(missing_ok=True)
    (repo / "a.txt").write_text("changed\n", encoding="utf-8")
    (repo / "new.txt").write_text("new\n", encoding="utf-8")
    await inspect(repo)
    await require_ready(repo, branch="theirs", commit=True)
    await changed_since(before, [repo / "a.txt"])
    list_repo_files(repo, 100)
    find_instructions(repo, repo, budget=1000)
    await create_branch(repo, "theirs")
    result = await commit_paths(repo, [repo / "a.txt", repo / "new.txt"], "message")
    filtered = any(key.startswith("filter.") for key in settings) or "include.path" in settings
    assert (result.commit is None) == filtered
    assert not filtered or "a program that this repository configures" in result.skipped[0][1]
    assert not marker.exists(), marker.read_text(encoding="utf-8")


async def test_the_settings_would_start_programs_for_a_person(repo: Path, git: Git, marker: Path):
    arm(repo, git, SETTINGS["fsmonitor"], marker)
    git(repo, "status")
    assert marker.exists()


@pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS)
async def test_nobody_is_asked_for_an_object_that_is_not_there(
    repo: Path, git: Git, marker: Path, settings: dict[str, str], tmp_path: Path
):
    lack(repo, marker, settings)
    await inspect(repo)
    list_repo_files(repo, 100)
    place = tree_place(repo)
    assert place is not None
    assert copy_index(place, tmp_path / "index")
    look_at_all(place, tmp_path / "index")
    await commit_paths(repo, [repo / "untracked.txt"], "message")
    assert not marker.exists()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [".gitignore", "src/.gitattributes"])
async def test_a_pipe_that_nobody_writes_to_holds_nobody_up(repo: Path, tmp_path: Path, name: str):
    (repo / name).unlink(missing_ok=True)
    os.mkfifo(repo / name)
    (repo / "src" / "c.txt").write_text("changed\n", encoding="utf-8")
    state = await inspect(repo)
    assert (state.problem, {entry.path for entry in state.dirty} >= {"src/c.txt"}) == ("", True)
    assert "a.txt" in (list_repo_files(repo, 100) or ())
    place = tree_place(repo)
    assert place is not None
    assert copy_index(place, tmp_path / "index")
    assert isinstance(look(place, tmp_path / "index"), TreeLook)
    assert (await commit_paths(repo, [repo / "src" / "c.txt"], "message")).commit


def test_a_command_cannot_put_a_repository_of_its_own_in_the_place_of_the_known_one(
    repo: Path, git: Git, tmp_path: Path
):
    ran = tmp_path / "ran"
    place = tree_place(repo)
    assert place is not None
    index = tmp_path / "index"
    assert copy_index(place, index)
    # Git passes over a folder that is no whole repository, and takes the workspace itself for a bare one.
    (repo / ".git" / "refs").rename(tmp_path / "refs")
    (repo / ".gitattributes").write_text("* filter=x\n", encoding="utf-8")
    (repo / "a.txt").write_text("b.txt\nmore\n", encoding="utf-8")
    for folder in ("objects", "refs"):
        (repo / folder).mkdir()
    (repo / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (repo / "config").write_text(
        f"[core]\n\tworktree = {repo}\n\tbare = false\n\trepositoryformatversion = 0\n"
        f'[filter "x"]\n\tclean = "touch {ran}; cat"\n\tsmudge = "touch {ran}; cat"\n',
        encoding="utf-8",
    )
    look_at_all(place, index)
    look(place, index)
    assert not ran.exists()


WRITING_AFTER_A_PROGRAM_CAME = """
import asyncio, os, sys
from pathlib import Path
from agent.core.errors import AgentError
from agent.repo.git import inspect
from agent.repo.git_write import Plumbing

async def main():
    state = await inspect(Path.cwd())
    program = Path("git")
    program.write_text(f"#!/bin/sh\\ntouch {sys.argv[1]}\\n", encoding="utf-8")
    program.chmod(0o755)
    try:
        Plumbing(state).run("write-tree")
    except AgentError:
        pass

asyncio.run(main())
"""


def test_a_program_named_git_in_the_present_folder_is_not_taken_for_git(repo: Path, tmp_path: Path):
    marker = tmp_path / "marker"
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PATH": f".{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(root)}
    program = (sys.executable, "-c", WRITING_AFTER_A_PROGRAM_CAME, str(marker))

    subprocess.run(program, cwd=repo, env=environment, check=True)

    assert not marker.exists()
