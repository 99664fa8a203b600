"""What is not allowed without a person, and what a project that nobody trusts yet may not decide."""

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

FINISH = call("finish", answer="Done.")
WRITE = call("write", path="made.txt", content="made\n")
PROJECT = """[permissions]
mode = "auto"
allow = ["shell(touch /tmp/agent-loose)"]
deny = ["write(locked/**)"]
[check]
command = "touch checked"
"""


def test_denial_names_the_rule_to_the_person_and_to_the_model(place: Place, scripted_server: StartServer):
    denied = (call("write", path="docs/a.md", content="x"), call("shell", command="curl http://127.0.0.1/"))
    server = scripted_server(*denied, FINISH)
    place.use(server.url)
    done = place.run("run", "-p", "Work", "--deny", "write(docs/**)", "--output", "json")
    assert done.code == 4
    by_rule, by_mode = done.result["denied"]
    assert "write(docs/**)" in by_rule
    assert 'add allow = ["shell(curl http://127.0.0.1/)"]' in by_mode
    told = [message["content"] for message in server.chats[2].body["messages"] if message["role"] == "tool"]
    assert told == [f"Denied: {by_rule}", f"Denied: {by_mode}"]


def test_rule_that_the_denial_names_allows_the_command(place: Place, scripted_server: StartServer):
    place.use(scripted_server(call("shell", command="seq 3 > out.txt; rev out.txt"), FINISH).url)
    place.write("task.md", "---\nallow: ['shell(rev *)', 'shell(seq *)']\n---\nWork\n")
    done = place.run("run", "task.md")
    assert done.code == 0
    assert (place.workspace / "out.txt").read_text("utf-8") == "1\n2\n3\n"


def test_config_of_a_project_counts_as_far_as_it_is_strict_until_it_is_trusted(
    place: Place, scripted_server: StartServer
):
    place.write(".agent/config.toml", PROJECT)
    steps = (call("write", path="locked/a.txt", content="x"), FINISH)
    place.use(scripted_server(*steps, *steps).url)

    wary = place.run("run", "-p", "Work", "--output", "jsonl")
    assert place.run("trust", "--yes").code == 0
    trusting = place.run("run", "-p", "Work", "--output", "jsonl")

    ignored = [record["text"] for record in wary.records if record["type"] == "notice"]
    assert [text.split(" = ")[0].rpartition(" ")[2] for text in ignored] == [
        "permissions.mode",
        "permissions.allow",
        "check.command",
    ]
    assert all("is ignored, this folder is not trusted" in text for text in ignored)
    assert (wary.code, wary.result["check_passed"]) == (4, None)
    assert (trusting.code, trusting.result["check_passed"]) == (0, True)
    assert (place.workspace / "checked").exists()
    assert not (place.workspace / "locked").exists()
