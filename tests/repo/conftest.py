"""Real repositories, made by the real git with a fixed identity and no configuration from outside."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., str]


@pytest.fixture(autouse=True)
def own_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The global configuration file of the test, with an identity in it."""
    path = tmp_path_factory.mktemp("home") / "gitconfig"
    path.write_text(
        "[user]\n\tname = Test\n\temail = test@example.com\n"
        '[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in (
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "EMAIL",
    ):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def git() -> Git:
    """Runs git in a folder and returns its output."""

    def run(folder: Path, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
        return done.stdout.decode("utf-8", "surrogateescape")

    return run


@pytest.fixture
def repo(tmp_path: Path, git: Git) -> Path:
    """Two commits of `a.txt`, `b.txt` and `src/c.txt` on `main`, nothing dirty."""
    repo = tmp_path / "repo"
    (repo / "src").mkdir(parents=True)
    git(repo, "init", "-q")
    for name in ("a.txt", "b.txt", "src/c.txt"):
        (repo / name).write_text(f"{name}\n", encoding="utf-8")
    (repo / ".gitignore").write_text("ignored/\n*.log\n", encoding="utf-8")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "first")
    (repo / "a.txt").write_text("a.txt\nmore\n", encoding="utf-8")
    git(repo, "commit", "-q", "-am", "second")
    return repo
