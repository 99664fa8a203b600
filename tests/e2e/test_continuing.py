"""Runs that go on with an earlier session, and undo of what commands did, with the real command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.fakes.script import Step, call

pytestmark = pytest.mark.timeout(300)

OLD = Path(__file__).parents[1] / "cases" / "sessions" / "format-1-run.jsonl"
FIRST = (
    Step(text="I write.", reasoning="hm", tool_calls=call("write", path="a.txt", content="one\n").tool_calls),
    "Written.",
)


def begun(place: Place) -> str:
    done = place.run("run", "-p", "Write a.txt", "--output", "json", "--allow", "shell")
    assert done.code == 0, done.err
    return str(done.result["session_id"])


def requests(server: object) -> list[list[dict[str, object]]]:
    return [chat.body["messages"] for chat in server.chats]  # pyright: ignore


def test_a_run_goes_on_with_the_last_one_and_repeats_it_word_for_word(
    place: Place, scripted_server: StartServer
):
    server = scripted_server(*FIRST, "As I said, one.")
    place.use(server.url)
    session = begun(place)
    again = place.run("run", "--continue", "-p", "What is in it?", "--output", "json")
    assert again.code == 0, again.err
    assert again.result["session_id"] == session
    before, after = requests(server)[-2:]
    assert after[: len(before)] == before
    assert "Written." in json.dumps(after)
    assert "What is in it?" in json.dumps(after[-1])
    assert len(place.sessions()) == 1


def rewritten(place: Place, session: str, change: Callable[[dict[str, Any]], None]) -> None:
    """The file of a session with each of its records as `change` leaves it."""
    [events] = place.state.glob(f"sessions/*/{session}/events.jsonl")
    records = [json.loads(line) for line in events.read_text("utf-8").splitlines()]
    for record in records:
        change(record)
    events.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def older_words(record: dict[str, Any]) -> None:
    for message in record.get("messages", ()):
        if message["role"] == "system":
            message["text"] = "The words of an older version."


def breaks_in(out: str) -> list[str]:
    events = [json.loads(line) for line in out.splitlines()]
    return [event["cause"] for event in events if event["type"] == "prefix_broken"]


def test_a_run_keeps_an_older_system_text_while_the_tools_are_the_same(
    place: Place, scripted_server: StartServer
):
    server = scripted_server(*FIRST, "As I said, one.")
    place.use(server.url)
    rewritten(place, begun(place), older_words)
    again = place.run("run", "--continue", "-p", "What is in it?", "--output", "jsonl")
    assert again.code == 0, again.err
    assert requests(server)[-1][0]["content"] == "The words of an older version."
    assert breaks_in(again.out) == []


def test_a_run_that_is_offered_other_tools_than_before_says_so(place: Place, scripted_server: StartServer):
    def had_another_tool(record: dict[str, Any]) -> None:
        older_words(record)
        if record["type"] == "prompt_head":
            record["tools"] = {"git__log": "0", **record["tools"]}

    server = scripted_server(*FIRST, "As I said, one.", "Still one.")
    place.use(server.url)
    rewritten(place, begun(place), had_another_tool)
    again = place.run("run", "--continue", "-p", "What is in it?", "--output", "jsonl")
    assert again.code == 0, again.err
    assert breaks_in(again.out) == ["other tools are offered than before by MCP servers: -git__log"]
    assert "older version" not in str(requests(server)[-1][0]["content"])
    once_more = place.run("run", "--continue", "-p", "Still?", "--output", "jsonl")
    assert breaks_in(once_more.out) == []


def test_a_run_can_go_on_in_a_copy(place: Place, scripted_server: StartServer):
    place.use(scripted_server(*FIRST, "Copied.").url)
    session = begun(place)
    again = place.run("run", "--resume", session, "--fork", "-p", "Go on", "--output", "json")
    assert again.code == 0, again.err
    assert again.result["session_id"] != session
    assert len(place.sessions()) == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--continue", "-p", "x"), "no earlier session in"),
        (("--resume", "nope", "-p", "x"), "no session 'nope' for"),
        (("--fork", "-p", "x"), "--fork needs --resume ID or --continue"),
        (("--continue", "--jobs", "2", "a.md", "b.md"), "a batch begins sessions of its own"),
        (("--continue", "--resume", "x", "-p", "x"), "not allowed with"),
    ],
)
def test_what_cannot_go_on_is_said_in_one_line(
    place: Place, scripted_server: StartServer, arguments: tuple[str, ...], complaint: str
):
    place.use(scripted_server().url)
    done = place.run("run", *arguments)
    assert done.code == 2
    assert complaint in done.complaint


def test_a_session_of_a_later_version_is_left_alone(place: Place, scripted_server: StartServer):
    place.use(scripted_server(*FIRST).url)
    session = begun(place)
    [events] = place.state.glob(f"sessions/*/{session}/events.jsonl")
    events.write_bytes(events.read_bytes().replace(b'"format":2', b'"format":99'))
    before = events.read_bytes()
    done = place.run("run", "--continue", "-p", "Go on")
    assert done.code == 2
    assert "was recorded by a later version (format 99)" in done.complaint
    assert events.read_bytes() == before
    assert "Written." in place.run("session", "show").out


def test_work_that_a_job_overwrites_is_kept_and_told(place: Place, scripted_server: StartServer):
    (place.workspace / "mine.txt").write_bytes(b"mine\r\n")
    job = "trap 'echo x > mine.txt; exit' TERM; echo up; while :; do sleep 0.1; done"
    place.use(scripted_server(call("shell", command=job, background=True), "Done.").url)
    done = place.run("run", "-p", "Work", "--allow", "shell")
    assert done.code == 0, done.err
    assert (place.workspace / "mine.txt").read_bytes() == b"x\n"
    said = "mine.txt changed while a command was in the background; what it was is "
    kept = next(line.partition(said)[2] for line in done.err.splitlines() if said in line)
    assert Path(kept).read_bytes() == b"mine\r\n"


def test_undo_goes_back_run_by_run_and_redo_forward_again(place: Place, scripted_server: StartServer):
    place.write("a.txt", "0\n")
    steps = [
        step
        for number in range(2)
        for step in (
            call("read", path="a.txt"),
            call("edit", path="a.txt", old=f"{number}\n", new=f"{number + 1}\n"),
            "Done.",
        )
    ]
    place.use(scripted_server(*steps).url)
    assert place.run("run", "-p", "First").code == 0
    assert place.run("run", "--continue", "-p", "Second").code == 0
    seen = []
    for words in ((), (), ("--redo",), ("--redo",)):
        done = place.run("undo", *words)
        assert done.code == 0, done.err
        seen.append(
            ((place.workspace / "a.txt").read_text("utf-8"), "(Second)" in done.err, "(First)" in done.err)
        )
    assert seen == [("1\n", True, False), ("0\n", False, True), ("1\n", False, True), ("2\n", True, False)]


def test_undo_takes_back_what_commands_did(place: Place, scripted_server: StartServer):
    (place.workspace / "mine.txt").write_bytes(b"mine\r\n")
    command = "echo x >> mine.txt; mkdir made; echo y > made/y.txt; cat mine.txt"
    place.use(scripted_server(call("shell", command=command), "Done.").url)
    done = place.run("run", "-p", "Work", "--allow", "shell", "--output", "json")
    assert done.code == 0, done.err
    assert (place.workspace / "mine.txt").read_bytes() == b"mine\r\nx\n"
    undone = place.run("undo")
    assert undone.code == 0, undone.err
    assert undone.out.splitlines() == ["restored  mine.txt", "deleted  made/y.txt"]
    assert (place.workspace / "mine.txt").read_bytes() == b"mine\r\n"
    assert not Path(place.workspace / "made").exists()


def test_a_run_of_an_older_format_goes_on_and_is_brought_up_to_date(
    place: Place, scripted_server: StartServer
):
    server = scripted_server(*FIRST, "Yes.", "Still.")
    place.use(server.url)
    session = begun(place)
    [events] = place.state.glob(f"sessions/*/{session}/events.jsonl")
    header = json.loads(events.read_text("utf-8").split("\n")[0])
    old = OLD.read_text("utf-8").replace("/somewhere", header["workspace"])
    events.write_text(old, "utf-8")
    for question in ("Sure?", "And now?"):
        done = place.run("run", "--continue", "-p", question, "--output", "json")
        assert done.code == 0, done.err
    before, after = requests(server)[-2:]
    assert "Result of read" in json.dumps(before)
    assert after[: len(before)] == before
    assert events.read_text("utf-8").startswith(old)


def test_a_session_is_copied_exported_and_removed(place: Place, scripted_server: StartServer):
    place.use(scripted_server(*FIRST).url)
    session = begun(place)
    copy = place.run("session", "fork", session)
    assert copy.code == 0, copy.err
    assert copy.out.strip() != session
    made = place.run("session", "export", copy.out.strip(), "-o", "session.html")
    assert made.code == 0, made.err
    page = (place.workspace / "session.html").read_text("utf-8")
    assert "Write a.txt" in page
    again = place.run("session", "export", "-o", "session.html")
    assert (again.code, again.complaint) == (2, "agent: session.html exists already")
    nowhere = place.run("session", "export", session, "-o", "gone/session.html")
    assert (nowhere.code, nowhere.complaint.endswith(": No such file or directory: gone/session.html")) == (
        2,
        True,
    )
    assert "## Model" in place.run("session", "export", session).out
    assert json.loads(place.run("session", "export", "--format", "json").out)["records"]
    assert place.run("session", "rm", session, copy.out.strip()).code == 0
    assert place.sessions() == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("fork",), "no earlier session in"),
        (("fork", "nope"), "no session 'nope' for"),
        (("export",), "no sessions in"),
        (("export", "--format", "pdf"), "--format takes markdown, html or json, not 'pdf'"),
        (("resume",), "the terminal interface needs a terminal"),
        (("frok",), "there is no action 'frok'"),
    ],
)
def test_what_cannot_be_done_with_a_session_is_said(place: Place, arguments: tuple[str, ...], complaint: str):
    done = place.run("session", *arguments)
    assert done.code == 2
    assert complaint in done.complaint
