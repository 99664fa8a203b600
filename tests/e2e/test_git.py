"""A run in every kind of repository: it changes what it says, and never a person's own work."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Done, Place
from tests.fakes.script import Step, call

pytestmark = pytest.mark.timeout(300)

WRITE = call("write", path="made.txt", content="made\n")
FINISH = call("finish", answer="Make made.txt.\n\nIt holds one line, as asked for.")


def git(folder: Path, *arguments: str) -> str:
    words = ["git", "-c", "user.name=P", "-c", "user.email=p@example.com", "-c", "protocol.file.allow=always"]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        [*words, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    return done.stdout


@pytest.fixture
def repository(place: Place) -> Place:
    """The workspace as a repository with one commit, of a person whom git knows."""
    make_repository(place.workspace)
    return place


def make_repository(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    (folder / "kept.txt").write_text("kept\n", "utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    git(folder, "config", "user.name", "P")
    git(folder, "config", "user.email", "p@example.com")


def run(
    place: Place, scripted_server: StartServer, *arguments: str, steps: tuple[Step, ...] = (WRITE, FINISH)
) -> Done:
    place.use(scripted_server(*steps).url)
    return place.run("run", "-p", "Make made.txt", "--output", "jsonl", *arguments)


def notices(done: Done) -> list[str]:
    return [record["text"] for record in done.records if record["type"] == "notice"]


def make_it_dirty(folder: Path) -> dict[str, bytes]:
    """Staged, staged and changed again, unstaged, deleted, untracked; returns what must stay as it is."""
    for name in ("staged", "both", "unstaged", "deleted"):
        (folder / name).write_text(f"{name}\n", "utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "second")
    (folder / "staged").write_bytes(b"staged\r\nby me\n")
    (folder / "both").write_text("first\n", "utf-8")
    git(folder, "add", "staged", "both")
    (folder / "both").write_text("second\n", "utf-8")
    (folder / "unstaged").write_bytes(b"\x00\xffbytes")
    (folder / "deleted").unlink()
    (folder / "untracked").write_text("mine\n", "utf-8")
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    files = {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and path.name != "made.txt"
    }
    return {
        **files,
        "(index)": git(folder, "ls-files", "--stage", "--debug").encode(),
        "(diff)": git(folder, "diff", "--cached").encode(),
    }


def test_dirty_tree_survives_byte_for_byte_with_its_index(repository: Place, scripted_server: StartServer):
    before = make_it_dirty(repository.workspace)
    index = (repository.workspace / ".git/index").read_bytes()
    done = run(repository, scripted_server)
    assert done.code == 0
    assert done.result["files_changed"] == ["made.txt"]
    assert contents(repository.workspace) == before
    assert (repository.workspace / ".git/index").read_bytes() == index


def test_commit_holds_the_runs_own_changes_in_the_models_words(
    repository: Place, scripted_server: StartServer
):
    before = make_it_dirty(repository.workspace)
    done = run(repository, scripted_server, "--commit", "--branch", "work")
    work = repository.workspace

    assert done.code == 0
    assert done.result["commit"] == git(work, "rev-parse", "HEAD").strip()
    assert (
        git(work, "log", "-1", "--format=%B").strip() == "Make made.txt.\n\nIt holds one line, as asked for."
    )
    assert git(work, "show", "--format=", "--name-only", "HEAD") == "made.txt\n"
    assert git(work, "branch", "--show-current") == "work\n"
    assert git(work, "log", "--format=%s", "main") == "second\nfirst\n"
    after = contents(work)
    assert {name: after[name] for name in before if name != "(index)"} == {
        name: text for name, text in before.items() if name != "(index)"
    }


def test_run_that_ends_unsolved_on_its_branch_says_how_to_go_back(
    repository: Place, scripted_server: StartServer
):
    done = run(repository, scripted_server, "--branch", "work", "--max-steps", "1")
    assert done.code == 3
    assert "you are now on the branch work; `git switch -` goes back" in done.out + done.err


def test_file_with_changes_of_the_person_is_not_committed(repository: Place, scripted_server: StartServer):
    (repository.workspace / "kept.txt").write_text("mine\n", "utf-8")
    steps = (
        call("read", path="kept.txt"),
        call("write", path="kept.txt", content="mine\nits\n"),
        WRITE,
        FINISH,
    )
    done = run(repository, scripted_server, "--commit", steps=steps)
    assert git(repository.workspace, "show", "--format=", "--name-only", "HEAD") == "made.txt\n"
    assert "not committed: kept.txt: it had uncommitted changes of yours before" in notices(done)
    assert (repository.workspace / "kept.txt").read_text("utf-8") == "mine\nits\n"


def test_what_somebody_else_changes_meanwhile_is_neither_listed_nor_committed(
    repository: Place, scripted_server: StartServer
):
    def meddle(_: object) -> Step:
        (repository.workspace / "theirs.txt").write_text("theirs\n", "utf-8")
        return FINISH

    repository.use(scripted_server(WRITE, call("shell", command="date"), meddle).url)
    done = repository.run("run", "-p", "Make it", "--output", "json", "--commit")
    assert done.result["files_changed"] == ["made.txt"]
    assert git(repository.workspace, "show", "--format=", "--name-only", "HEAD") == "made.txt\n"


def test_what_a_command_makes_is_the_runs_own_and_the_checks_litter_is_not(
    repository: Place, scripted_server: StartServer
):
    steps = (call("shell", command="echo hello > generated.txt"), WRITE, FINISH)
    done = run(repository, scripted_server, "--commit", "--check", "date > litter-$$", steps=steps)
    assert done.result["files_changed"] == ["generated.txt", "made.txt"]
    assert (
        git(repository.workspace, "show", "--format=", "--name-only", "HEAD") == "generated.txt\nmade.txt\n"
    )


def test_formatter_in_the_check_is_not_taken_for_somebody_else(
    repository: Place, scripted_server: StartServer
):
    check = "test ! -f made.txt || tr a-z A-Z < made.txt > t && mv t made.txt"
    done = run(repository, scripted_server, "--commit", "--check", check)
    assert notices(done) == [f"committed {done.result['commit'][:10]}"]
    assert git(repository.workspace, "show", "HEAD:made.txt") == "MADE\n"


def test_failed_run_commits_nothing(repository: Place, scripted_server: StartServer):
    done = run(repository, scripted_server, "--commit", "--max-steps", "1")
    assert (done.code, done.result["commit"], done.result["files_changed"]) == (3, None, ["made.txt"])
    assert git(repository.workspace, "log", "--format=%s") == "first\n"


def test_commit_that_git_refuses_in_the_end_is_no_success(repository: Place, scripted_server: StartServer):
    def lock(_: object) -> Step:
        (repository.workspace / ".git/refs/heads/main.lock").write_text("", "utf-8")
        return FINISH

    repository.use(scripted_server(WRITE, lock).url)
    done = repository.run("run", "-p", "Make it", "--commit", "--output", "json")
    assert (done.code, done.result["commit"], done.result["files_changed"]) == (1, None, ["made.txt"])
    assert done.result["error"].startswith("git update-ref failed: ")
    assert f"error: {done.result['error']}" in done.err


@pytest.mark.parametrize(
    ("branch", "error"),
    [
        ("main", "the branch main exists already"),
        ("a..b", "'a..b' is not a valid branch name"),
    ],
)
def test_branch_that_cannot_be_made_is_refused_before_the_first_request(
    repository: Place, scripted_server: StartServer, branch: str, error: str
):
    server = scripted_server()
    repository.use(server.url)
    done = repository.run("run", "-p", "Hello", "--branch", branch)
    assert (done.code, done.err.splitlines()[0]) == (2, f"agent: {error}")
    assert server.requests == []


def test_error_after_the_session_began_is_its_result(repository: Place, scripted_server: StartServer):
    (repository.workspace / ".git/HEAD.lock").write_text("", "utf-8")
    done = run(repository, scripted_server, "--branch", "work")
    assert done.code == 1
    assert [record["type"] for record in done.records] == ["session_started", "turn_finished", "result"]
    assert done.result["error"].startswith("git symbolic-ref failed: ")
    assert [record["type"] for record in repository.sessions()[0][-2:]] == ["turn_finished", "result"]


def test_commit_of_somebody_whom_git_does_not_know_is_refused_before_the_first_request(
    repository: Place, scripted_server: StartServer
):
    git(repository.workspace, "config", "--unset", "user.email")
    done = run(repository, scripted_server, "--commit")
    assert (done.code, done.result["error"]) == (2, "git does not know who you are, so it cannot commit")


def test_folder_without_a_repository_works(place: Place, scripted_server: StartServer):
    done = run(place, scripted_server)
    assert (done.code, done.result["files_changed"]) == (0, ["made.txt"])


def test_repository_before_its_first_commit_gets_one(place: Place, scripted_server: StartServer):
    git(place.workspace, "init", "-q", "-b", "main")
    git(place.workspace, "config", "user.name", "P")
    git(place.workspace, "config", "user.email", "p@example.com")
    place.write("mine.txt", "mine\n")
    git(place.workspace, "add", "mine.txt")
    done = run(place, scripted_server, "--commit", "--branch", "start")
    assert done.code == 0
    assert git(place.workspace, "ls-tree", "--name-only", "HEAD") == "made.txt\n"
    assert git(place.workspace, "status", "--porcelain") == "A  mine.txt\n"


def test_detached_head_is_committed_to_with_a_warning(repository: Place, scripted_server: StartServer):
    git(repository.workspace, "checkout", "-q", "--detach")
    done = run(repository, scripted_server, "--commit")
    assert "the commit is on no branch, because HEAD is detached" in notices(done)
    assert git(repository.workspace, "log", "-1", "--format=%s") == "Make made.txt.\n"


def test_linked_worktree_and_submodule_are_repositories_too(repository: Place, scripted_server: StartServer):
    library = repository.folder / "library"
    library.mkdir()
    make_repository(library)
    git(repository.workspace, "submodule", "--quiet", "add", str(library), "lib")
    git(repository.workspace, "commit", "-qm", "library")
    git(repository.workspace, "worktree", "add", "-q", "../linked")
    inside = repository.workspace / "lib"
    git(inside, "config", "user.name", "P")
    git(inside, "config", "user.email", "p@example.com")
    for folder in (repository.folder / "linked", inside):
        done = run(repository, scripted_server, "-C", str(folder), "--commit")
        assert (done.code, done.result["files_changed"]) == (0, ["made.txt"])
        assert git(folder, "show", "--format=", "--name-only", "HEAD") == "made.txt\n"
    assert git(repository.workspace, "log", "-1", "--format=%s") == "library\n"


def test_subfolder_is_the_workspace_and_git_means_the_repository(
    repository: Place, scripted_server: StartServer
):
    repository.write("sub/here.txt", "here\n")
    repository.write("outside.txt", "outside\n")
    git(repository.workspace, "add", ".")
    git(repository.workspace, "commit", "-qm", "second")
    steps = (call("write", path="../outside.txt", content="no\n"), WRITE, FINISH)
    done = run(repository, scripted_server, "-C", "sub", "--commit", steps=steps)
    assert done.result["files_changed"] == ["made.txt"]
    assert git(repository.workspace, "show", "--format=", "--name-only", "HEAD") == "sub/made.txt\n"
    assert (repository.workspace / "outside.txt").read_text("utf-8") == "outside\n"


def test_missing_git_only_matters_to_who_asks_for_it(place: Place, scripted_server: StartServer):
    make_repository(place.workspace)
    tools = place.folder / "bin"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    place.variables["PATH"] = str(tools)
    assert run(place, scripted_server).code == 0
    done = run(place, scripted_server, "--branch", "work")
    assert (done.code, done.result["error"]) == (2, "git is not installed or not on the PATH")
