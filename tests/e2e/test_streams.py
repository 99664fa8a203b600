"""Whatever standard input, output and error are: closed, endless, or read by somebody who leaves."""

import json
import os
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import AGENT, Place, ended
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

FINISH = call("finish", answer="All is well.")
WRITE = call("write", path="made.txt", content="made\n")


def with_redirection(redirection: str) -> tuple[str, ...]:
    return ("sh", "-c", f'exec "$@" {redirection}', "sh", *AGENT)


@pytest.mark.parametrize("redirection", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_streams_are_no_obstacle(place: Place, scripted_server: StartServer, redirection: str):
    place.use(scripted_server(WRITE, FINISH).url)
    done = place.run("run", "-p", "Hello", program=with_redirection(redirection))
    assert (done.code, done.out) == (0, "All is well.\n")
    # A file that gets the number of a closed stream would take up what is printed.
    assert {record["type"] for record in place.sessions()[0]} >= {"session", "turn_finished", "result"}


def test_closed_standard_output_does_not_stop_the_work(place: Place, scripted_server: StartServer):
    place.use(scripted_server(WRITE, FINISH).url)
    done = place.run("run", "-p", "Hello", program=with_redirection("<&- >&- 2>&-"))
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (place.workspace / "made.txt").exists()


def test_closed_standard_input_holds_no_task(place: Place):
    done = place.run("run", "-", program=with_redirection("<&-"))
    assert done.code == 2
    assert done.err.startswith("agent: standard input is closed, so there is no task to read\nhint: ")


def test_endless_standard_input_is_not_waited_for_when_the_task_is_given(
    place: Place, scripted_server: StartServer
):
    server = scripted_server(call("shell", command="cat; echo end of input"), FINISH)
    place.use(server.url)
    reading, writing = os.pipe()
    try:
        process = place.start("run", "-p", "Hello", "--check", "cat", stdin=reading)
        assert ended(process).code == 0
    finally:
        os.close(reading)
        os.close(writing)
    assert "end of input" in str(server.chats[1].body)


def test_dash_reads_the_task_with_its_front_matter_from_standard_input(
    place: Place, scripted_server: StartServer
):
    server = scripted_server(FINISH)
    place.use(server.url)
    done = place.run("run", "-", stdin="---\ncheck: 'true'\n---\nSay that all is well.\n")
    assert done.code == 0
    assert "check passed: true" in done.err
    assert "Say that all is well." in str(server.chats[0].body)


def test_run_ends_in_order_when_the_reader_of_its_events_leaves(place: Place, scripted_server: StartServer):
    place.use(scripted_server(WRITE, {"fault": "endless", "text": " ".join(map(str, range(9999)))}).url)
    process = place.start("run", "-p", "Hello", "--output", "jsonl")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["type"] == "session_started"
    process.stdout.close()
    process.stdout = None
    done = ended(process)

    assert (done.code, done.err) == (130, "")
    assert [record["type"] for record in place.sessions()[0][-2:]] == ["turn_finished", "result"]


def test_answer_that_nobody_takes_is_no_success(place: Place, scripted_server: StartServer):
    place.use(scripted_server(WRITE, FINISH).url)
    reading, writing = os.pipe()
    os.close(reading)
    process = place.start("run", "-p", "Hello", stdout=writing)
    os.close(writing)
    done = ended(process)
    assert done.code == 1
    assert (place.workspace / "made.txt").exists()


def test_progress_that_nobody_reads_does_not_stop_the_work(place: Place, scripted_server: StartServer):
    place.use(scripted_server(WRITE, FINISH).url)
    reading, writing = os.pipe()
    os.close(reading)
    process = place.start("run", "-p", "Hello", stderr=writing)
    os.close(writing)
    done = ended(process)
    assert (done.code, done.out) == (0, "All is well.\n")


def test_full_disk_behind_standard_output_is_no_success(place: Place, scripted_server: StartServer):
    place.use(scripted_server(FINISH).url)
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        process = place.start("run", "-p", "Hello", "--output", "json", stdout=full)
        assert ended(process).code == 1


def test_full_disk_behind_standard_error_changes_no_exit_code(place: Place):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        assert ended(place.start("run", "-p", "", stderr=full)).code == 2
