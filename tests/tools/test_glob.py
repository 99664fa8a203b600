import os
import subprocess
import threading
from pathlib import Path, PosixPath

import pytest

from agent.core.tool import ToolContext
from tests.repo.lacking import WAYS, lack
from tools._find.listing import list_files
from tools._find.names import name_matcher
from tools.glob import GlobParams, GlobTool


@pytest.fixture
def glob(context):
    async def run(pattern: str, **options: str):
        return await GlobTool().run(GlobParams(pattern=pattern, **options), context)

    return run


def create(workspace: Path, *names: str) -> None:
    for name in names:
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def git(workspace: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=workspace, check=True, capture_output=True)


async def test_finds_names_in_all_folders_in_order(glob, workspace: Path):
    create(workspace, "b.py", "a/z.py", "a/b/c.py", "a.txt", ".github/d.py")

    assert (await glob("*.py")).model_text == ".github/d.py\na/b/c.py\na/z.py\nb.py"


async def test_searches_only_below_the_path(glob, workspace: Path):
    create(workspace, "src/a.py", "src/in/b.py", "c.py")

    assert (await glob("*.py", path="src")).model_text == "src/a.py\nsrc/in/b.py"
    assert (await glob("in/", path="src")).model_text == "src/in/b.py"


async def test_finds_nothing_without_an_error(glob):
    result = await glob("*.py")

    assert (result.model_text, result.is_error) == ("no such files", False)


async def test_many_names_are_cut_with_a_note(glob, workspace: Path):
    create(workspace, *(f"{number:03}" for number in range(130)))

    assert (await glob("*")).model_text.endswith("\n099\n(30 more; use a narrower pattern)")


async def test_respects_ignore_files_outside_of_git(glob, workspace: Path):
    create(workspace, "a.log", "keep.log", "out/x.py", "sub/b.tmp", "sub/c.py", "node_modules/d.py")
    (workspace / ".gitignore").write_text("*.log\n!keep.log\nout/\n", encoding="utf-8")
    (workspace / "sub" / ".gitignore").write_text("*.tmp\n", encoding="utf-8")

    assert (await glob("*")).model_text == ".gitignore\nkeep.log\nsub/.gitignore\nsub/c.py"


async def test_respects_what_git_ignores(glob, workspace: Path):
    git(workspace, "init", "-q")
    create(workspace, "new.py", "a.log", "tracked.log", "gone.py", "mine.txt", "grün.py", ".venv/x.py")
    (workspace / ".gitignore").write_text("*.log\n", encoding="utf-8")
    (workspace / ".git" / "info" / "exclude").write_text("mine.txt\n", encoding="utf-8")
    git(workspace, "add", "-f", "tracked.log", "gone.py")
    (workspace / "gone.py").unlink()

    assert (await glob("*")).model_text == ".gitignore\ngrün.py\nnew.py\ntracked.log"


async def test_looks_into_repositories_inside_a_repository(glob, workspace: Path):
    git(workspace, "init", "-q")
    create(workspace, "lib/a.py", "lib/b.log")
    git(workspace / "lib", "init", "-q")
    (workspace / "lib" / ".gitignore").write_text("*.log\n", encoding="utf-8")

    assert (await glob("*")).model_text == "lib/.gitignore\nlib/a.py"


async def test_a_folder_that_git_ignores_is_listed_when_it_is_named(glob, workspace: Path):
    git(workspace, "init", "-q")
    create(workspace, "build/out.py")
    (workspace / ".gitignore").write_text("build/\n", encoding="utf-8")

    assert (await glob("*.py", path="build")).model_text == "build/out.py"


async def test_a_repository_cannot_make_listing_run_a_program(glob, workspace: Path):
    git(workspace, "init", "-q")
    create(workspace, "a.py")
    hook = workspace / "hook.sh"
    hook.write_text("#!/bin/sh\ntouch ran\n", encoding="utf-8")
    hook.chmod(0o755)
    git(workspace, "config", "core.fsmonitor", "./hook.sh")

    await glob("*")

    assert not (workspace / "ran").exists()


@pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS)
async def test_a_repository_that_lacks_an_object_cannot_either(
    glob, workspace: Path, tmp_path: Path, settings: dict[str, str]
):
    git(workspace, "init", "-q")
    lack(workspace, tmp_path / "ran", settings)

    assert (await glob("*.txt")).model_text == "untracked.txt"
    assert not (tmp_path / "ran").exists()


@pytest.mark.timeout(25)
async def test_an_ignore_file_that_is_a_pipe_is_not_waited_for(glob, workspace: Path):
    git(workspace, "init", "-q")
    create(workspace, "a.py", "sub/b.py")
    for folder in (workspace, workspace / "sub"):
        os.mkfifo(folder / ".gitignore")

    assert (await glob("*.py")).model_text == "a.py\nsub/b.py"


async def test_folders_behind_links_are_not_followed(glob, workspace: Path):
    create(workspace, "a/b.py")
    (workspace / "loop").symlink_to(workspace)
    (workspace / "self").symlink_to(workspace / "self")
    (workspace / "dead").symlink_to(workspace / "gone")

    assert (await glob("*.py")).model_text == "a/b.py"


@pytest.mark.parametrize(
    ("pattern", "path"), [("", "."), ("{a", "."), ("*", "no"), ("*", "file"), ("*", "..")]
)
async def test_what_makes_no_sense_is_an_error(glob, workspace: Path, pattern: str, path: str):
    create(workspace, "file")

    assert (await glob(pattern, path=path)).is_error


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*.py", "a/b.py", True),
        ("src/*.py", "src/b.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/**/*.py", "src/b.py", True),
        ("src/**/*.py", "src/x/y/b.py", True),
        ("**/*.py", "b.py", True),
        ("**", "a/b", True),
        ("src/", "src/a/b.c", True),
        ("/src/*", "src/a", True),
        ("./src/*", "src/a", True),
        ("*.{py,js}", "a/b.js", True),
        ("*.{py,js}", "b.ts", False),
        ("{src,tests}/*.py", "tests/a.py", True),
        ("?.py", "ab.py", False),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("a.py", "a_py", False),
        ("a,b", "a,b", True),
        ("app/[id]/*.tsx", "app/[id]/page.tsx", True),
        ("app/[user-id]/*.tsx", "app/[user-id]/page.tsx", True),
        ("app/[id]/*.tsx", "app/i/page.tsx", True),
        ("app/[id]/*.tsx", "app/id/page.tsx", False),
        ("app/[...all]/page.tsx", "app/[...all]/page.tsx", True),
    ],
)
def test_patterns_mean_what_people_expect(pattern: str, name: str, fits: bool):
    assert (name_matcher(pattern).fullmatch(name) is not None) is fits


class NotedPath(PosixPath):
    """A folder that notes which threads ask for what is in it."""

    threads: set[threading.Thread]

    def __truediv__(self, name: str | os.PathLike[str]) -> Path:
        self.threads.add(threading.current_thread())
        return Path(self, name)


async def test_each_file_of_a_repository_is_looked_at_beside_the_event_loop(
    workspace: Path, context: ToolContext
):
    """There may be tens of thousands, and sixty thousand took a second."""
    git(workspace, "init", "-q")
    create(workspace, "a.py")
    folder = NotedPath(workspace)
    folder.threads = set()
    assert await list_files(folder, context.environment) == ["a.py"]
    assert folder.threads - {threading.current_thread()}
