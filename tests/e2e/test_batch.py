"""`agent run a.md b.md …`: work trees, branches, slots, interruption, and going on."""

import itertools
import json
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Done, Place, ended
from tests.e2e.test_git import contents, git, make_it_dirty, make_repository
from tests.fakes.script import Step, call
from tests.fakes.scripted_server import ScriptedServer

pytestmark = pytest.mark.timeout(300)


def does_what_it_is_told(body: Mapping[str, Any]) -> Step:
    """Writes the file that the task names, then is done."""
    asked = re.search(r"Make (\w+\.txt) please", json.dumps(body["messages"]))
    assert asked is not None
    name = asked[1]
    if body["messages"][-1]["role"] == "tool":
        return Step(text=f"Make {name}.")
    return call("write", path=name, content=f"{name}\n")


def good_server(scripted_server: StartServer, **settings: Any) -> ScriptedServer:
    return scripted_server(*[does_what_it_is_told] * 20, **settings)


@pytest.fixture
def repository(place: Place) -> Place:
    """A repository with one commit, and tasks a and b beside it that ask for a.txt and b.txt."""
    make_repository(place.workspace)
    for name in ("a", "b"):
        (place.folder / f"{name}.md").write_text(f"Make {name}.txt please\n", "utf-8")
    return place


def batch(place: Place, *arguments: str) -> Done:
    return place.run("run", *arguments, "--output", "json")


def branches(folder: Path) -> list[str]:
    return git(folder, "branch", "--format=%(refname:short)").split()


def worktrees(folder: Path) -> list[str]:
    return [
        line for line in git(folder, "worktree", "list", "--porcelain").splitlines() if "worktree " in line
    ]


def tasks_of(done: Done) -> dict[str, dict[str, Any]]:
    return {task["name"]: task for task in done.result["tasks"]}


def test_each_task_is_committed_on_a_branch_of_its_own(repository: Place, scripted_server: StartServer):
    repository.use(good_server(scripted_server, total_slots=2).url)
    done = batch(repository, "../a.md", "../b.md", "--jobs", "2")
    work = repository.workspace
    assert (done.code, done.result["exit_code"], done.result["done"]) == (0, 0, 2)
    for name, task in tasks_of(done).items():
        assert task["state"] == "done"
        assert git(work, "show", f"{task['branch']}:{name}.txt") == f"{name}.txt\n"
        assert git(work, "diff", "--name-only", "main", task["branch"]) == f"{name}.txt\n"
        assert git(work, "log", "-1", "--format=%s", task["branch"]) == f"Make {name}.txt.\n"
        assert task["worktree"] is None
    assert len(worktrees(work)) == 1
    assert sorted(path.name for path in work.iterdir()) == [".git", "kept.txt"]


def test_checkout_index_and_uncommitted_work_stay_byte_for_byte(
    repository: Place, scripted_server: StartServer
):
    before = make_it_dirty(repository.workspace)
    head = git(repository.workspace, "rev-parse", "HEAD")
    repository.use(good_server(scripted_server).url)
    done = batch(repository, "../a.md", "../b.md")
    assert done.code == 0
    assert contents(repository.workspace) == before
    assert git(repository.workspace, "rev-parse", "HEAD") == head
    assert git(repository.workspace, "branch", "--show-current") == "main\n"
    assert "uncommitted changes in" in done.err
    assert f"each task starts from {head[:10]}" in done.err
    a = tasks_of(done)["a"]["branch"]
    assert "untracked" not in git(repository.workspace, "ls-tree", "--name-only", a).split()


def test_never_more_at_once_than_the_server_has_slots(repository: Place, scripted_server: StartServer):
    server = good_server(scripted_server, total_slots=1)
    repository.use(server.url)
    done = batch(repository, "../a.md", "../b.md", "--jobs", "8")
    assert done.code == 0
    assert "1 at once, because the server has 1 slot" in done.err
    spans = [(chat.arrived_at, chat.replied_at or 0) for chat in server.chats]
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    whose = ["a.txt" in json.dumps(chat.body["messages"]) for chat in server.chats]
    assert whose == [True, True, False, False]


def test_text_form_ends_with_a_table_and_shows_lines_with_the_tasks_names(
    repository: Place, scripted_server: StartServer
):
    repository.use(good_server(scripted_server).url)
    done = repository.run("run", "../a.md", "../b.md")
    head, *rows = done.out.splitlines()
    assert head.split() == ["task", "result", "check", "steps", "seconds", "files", "branch"]
    assert [row.split()[:2] for row in rows] == [["a", "done"], ["b", "done"]]
    assert "[a] • write a.txt" in done.err
    assert "[b] • write b.txt" in done.err


def test_json_lines_name_the_task_of_each_event(repository: Place, scripted_server: StartServer):
    repository.use(good_server(scripted_server).url)
    done = repository.run("run", "../a.md", "../b.md", "--output", "jsonl")
    *events, last = done.records
    assert {event["task"] for event in events} == {"a", "b"}
    assert sum(event["type"] == "result" for event in events) == 2
    assert last["type"] == "batch"


def test_worst_task_decides_the_exit_code_and_its_work_is_kept(
    repository: Place, scripted_server: StartServer
):
    (repository.folder / "b.md").write_text("---\ncheck: 'false'\n---\nMake b.txt please\n", "utf-8")
    repository.use(good_server(scripted_server).url)
    done = batch(repository, "../a.md", "../b.md", "--max-steps", "4")
    assert done.code == max(task["result"]["exit_code"] for task in tasks_of(done).values()) > 0
    b = tasks_of(done)["b"]
    assert (b["state"], tasks_of(done)["a"]["state"]) == ("not_done", "done")
    assert (Path(b["worktree"]) / "b.txt").read_text("utf-8") == "b.txt\n"
    assert f"b: its work is in {b['worktree']}" in done.err
    [command] = re.findall(r"b: `(.+)` throws it away", done.err)
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    assert branches(repository.workspace) == sorted([tasks_of(done)["a"]["branch"], "main"])
    assert len(worktrees(repository.workspace)) == 1
    assert f"`agent run --resume-batch {done.result['batch_id']}`" in done.err


def test_batch_goes_on_with_what_is_not_done(repository: Place, scripted_server: StartServer):
    server = scripted_server(
        *[does_what_it_is_told] * 2,
        {"fault": "http_500", "message": "out of memory", "times": 3},
        *[does_what_it_is_told] * 4,
    )
    repository.use(server.url)
    first = batch(repository, "../a.md", "../b.md")
    assert first.code == 5
    (repository.folder / "b.md").unlink()
    again = batch(repository, "--resume-batch", "last")
    assert again.code == 0, again.err
    assert again.result["batch_id"] == first.result["batch_id"]
    assert len(server.chats) == 2 + 3 + 2
    assert tasks_of(again)["a"] == tasks_of(first)["a"]
    assert git(repository.workspace, "show", f"{tasks_of(again)['b']['branch']}:b.txt") == "b.txt\n"


def begin_and_hang(place: Place, scripted_server: StartServer) -> "subprocess.Popen[str]":
    """A batch whose first task is done and whose second has written its file and waits for the server."""
    server = scripted_server(
        does_what_it_is_told, does_what_it_is_told, does_what_it_is_told, {"fault": "pings"}
    )
    place.use(server.url)
    process = place.start("run", "../a.md", "../b.md", "--output", "json")
    server.wait_for_chats(4, 120)
    return process


def test_ctrl_c_stops_all_and_says_how_to_go_on(repository: Place, scripted_server: StartServer):
    process = begin_and_hang(repository, scripted_server)
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert done.code == done.result["exit_code"] == 130
    assert {name: task["state"] for name, task in tasks_of(done).items()} == {"a": "done", "b": "interrupted"}
    assert f"`agent run --resume-batch {done.result['batch_id']}`" in done.err
    assert (Path(tasks_of(done)["b"]["worktree"]) / "b.txt").exists()


def test_killed_batch_goes_on_and_loses_nothing(repository: Place, scripted_server: StartServer):
    process = begin_and_hang(repository, scripted_server)
    process.kill()
    process.communicate()
    repository.use(scripted_server(Step(text="It was there.")).url)
    done = batch(repository, "--resume-batch", "last")
    assert done.code == 0, done.err
    branch = tasks_of(done)["b"]["branch"]
    assert git(repository.workspace, "show", f"{branch}:b.txt") == "b.txt\n"
    assert "Unfinished work on b" in git(repository.workspace, "log", "--format=%s", branch)
    assert len(worktrees(repository.workspace)) == 1


def test_batch_of_another_process_is_left_alone(repository: Place, scripted_server: StartServer):
    process = begin_and_hang(repository, scripted_server)
    try:
        other = batch(repository, "--resume-batch", "last")
        assert other.code == 2
        assert "is at work in another process" in other.complaint
    finally:
        process.kill()
        process.communicate()


def test_two_batches_of_the_same_tasks_at_once_do_not_collide(
    repository: Place, scripted_server: StartServer
):
    repository.use(good_server(scripted_server, total_slots=4).url)
    both = [repository.start("run", "../a.md", "../b.md", "--output", "json") for _ in range(2)]
    results = [ended(process) for process in both]
    assert [done.code for done in results] == [0, 0], results
    made = [task["branch"] for done in results for task in tasks_of(done).values()]
    assert len(set(made)) == 4
    assert set(made) < set(branches(repository.workspace))


def test_branches_can_be_named(repository: Place, scripted_server: StartServer):
    repository.use(good_server(scripted_server).url)
    assert batch(repository, "../a.md", "../b.md", "--branch", "fix").code == 0
    assert branches(repository.workspace) == ["fix/a", "fix/b", "main"]
    again = batch(repository, "../a.md", "../b.md", "--branch", "fix")
    assert (again.code, again.complaint) == (2, "agent: the branch fix/a exists already")


def test_tasks_of_one_name_get_branches_of_two(repository: Place, scripted_server: StartServer):
    other = repository.folder / "other"
    other.mkdir()
    (other / "a.md").write_text("Make c.txt please\n", "utf-8")
    repository.use(good_server(scripted_server).url)
    done = batch(repository, "../a.md", "../other/a.md", "--branch", "x")
    assert branches(repository.workspace) == ["main", "x/a", "x/a-2"]
    assert done.code == 0


def test_batch_in_a_subfolder_works_in_that_folder(repository: Place, scripted_server: StartServer):
    work = repository.workspace
    (work / "part").mkdir()
    (work / "part" / "here.md").write_text("here\n", "utf-8")
    git(work, "add", ".")
    git(work, "commit", "-qm", "a part")
    repository.use(good_server(scripted_server).url)
    done = batch(repository, "../a.md", "--jobs", "1", "-C", "part")
    assert git(work, "diff", "--name-only", "main", tasks_of(done)["a"]["branch"]) == "part/a.txt\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("../a.md", "--jobs", "0"), "--jobs has to be at least 1, not 0"),
        (("../a.md", "../no.md"), "there is no task file"),
        (("../a.md", "./../a.md"), "the task ./../a.md is named twice"),
        (("../a.md", "-"), "a batch reads no task from standard input"),
        (("../a.md", "../b.md", "-p", "x"), "a batch takes task files, no -p"),
        (("--resume-batch", "no-such"), "there is no batch no-such"),
        (("--resume-batch", "last"), "there is no batch last"),
        (("../a.md", "--resume-batch", "last"), "--resume-batch goes on with the tasks"),
        (("../a.md", "../b.md", "--branch", "a..b"), "'a..b/a' is not a valid branch name"),
        (("../a.md", "../b.md", "--allow", "(("), "is not"),
        (("--jobs", "2"), "no task was given"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_made(
    repository: Place, arguments: tuple[str, ...], complaint: str
):
    done = batch(repository, *arguments)
    assert done.code == done.result["exit_code"] == 2
    assert complaint in done.complaint
    assert branches(repository.workspace) == ["main"]
    assert not (repository.folder / "data" / "worktrees").exists()
    assert not (repository.state / "batches").exists()


def test_folder_without_a_repository_is_refused(place: Place):
    place.write("a.md", "Make a.txt please\n")
    done = batch(place, "a.md", "--jobs", "1")
    assert done.code == 2
    assert "a batch needs a git repository" in done.complaint


def test_repository_without_a_commit_is_refused(place: Place):
    git(place.workspace, "init", "-q")
    place.write("a.md", "Make a.txt please\n")
    done = batch(place, "a.md", "--jobs", "1")
    assert done.code == 2
    assert "has no commit yet" in done.complaint


def test_task_that_changed_nothing_leaves_nothing_behind(repository: Place, scripted_server: StartServer):
    fails = {"fault": "http_500", "message": "out of memory", "times": 3}
    repository.use(scripted_server(Step(text="Nothing is to do."), fails).url)
    done = batch(repository, "../a.md", "../b.md")
    states = {
        name: (task["state"], task["branch"], task["worktree"]) for name, task in tasks_of(done).items()
    }
    assert states == {"a": ("done", None, None), "b": ("not_done", None, None)}
    assert branches(repository.workspace) == ["main"]
    assert len(worktrees(repository.workspace)) == 1
    assert "its work is in" not in done.err


def test_task_that_left_nothing_can_go_on_with_its_branch_made_again(
    repository: Place, scripted_server: StartServer
):
    fails = {"fault": "http_500", "message": "out of memory", "times": 3}
    repository.use(scripted_server(fails, *[does_what_it_is_told] * 2).url)
    assert batch(repository, "../a.md", "--jobs", "1").code == 5
    again = batch(repository, "--resume-batch", "last")
    assert again.code == 0, again.err
    assert git(repository.workspace, "show", f"{tasks_of(again)['a']['branch']}:a.txt") == "a.txt\n"
