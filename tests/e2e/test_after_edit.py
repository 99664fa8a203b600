"""Formatters and checks after edits through the real command, and what a clone may decide about them."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

FINISH = call("finish", answer="Done.")
UGLY = call("write", path="new.py", content="x = { 'a':1 }\nprint(y)\n")
TIDY = 'x = {"a": 1}\nprint(y)\n'


@pytest.fixture(autouse=True)
def ruff_on_the_path(place: Place) -> None:
    place.variables["PATH"] = f"{Path(sys.executable).parent}:{place.environment['PATH']}"


def told(server: Any) -> list[str]:
    return [message["content"] for message in server.chats[-1].body["messages"] if message["role"] == "tool"]


def test_configured_preset_formats_checks_and_can_be_undone(place: Place, scripted_server: StartServer):
    server = scripted_server(UGLY, call("edit", path="new.py", old="print(y)", new="print(x)"), FINISH)
    place.use(server.url)
    place.config.mkdir()
    (place.config / "config.toml").write_text('after_edit = ["ruff"]\n')
    done = place.run("run", "-p", "Work", "--output", "jsonl")
    assert done.code == 0
    assert (place.workspace / "new.py").read_text() == 'x = {"a": 1}\nprint(x)\n'
    first, second = told(server)
    assert "`ruff format` then formatted new.py: line 1 is laid out differently." in first
    assert "new.py:2:7: F821 Undefined name `y`" in first
    assert "problems" not in second
    written = next(record for record in done.records if record["type"] == "tool_finished")
    assert written["diffs"][0]["after"] == TIDY
    assert place.run("undo").code == 0
    assert not (place.workspace / "new.py").exists()


def test_formatter_of_a_project_runs_only_after_the_person_trusted_it(
    place: Place, scripted_server: StartServer
):
    place.write("ruff.toml", "")
    place.use(scripted_server(UGLY, FINISH, UGLY, FINISH, UGLY, FINISH).url)
    new = place.workspace / "new.py"

    assert place.run("run", "-p", "Work").code == 0
    assert "{ 'a':1 }" in new.read_text()

    new.unlink()
    shown = place.run("trust", "--yes")
    assert "ruff (ruff.toml)" in shown.err
    assert "formatters" in place.run("trust", "--list").out
    assert place.run("run", "-p", "Work").code == 0
    assert new.read_text() == TIDY

    new.unlink()
    assert "no longer trusted" in place.run("trust", "--revoke").err
    assert place.run("run", "-p", "Work").code == 0
    assert "{ 'a':1 }" in new.read_text()


def test_project_that_asks_for_another_formatter_has_to_be_trusted_again(place: Place):
    place.write("ruff.toml", "")
    assert place.run("trust", "--yes").code == 0
    assert "trusted already" in place.run("trust", "--yes").err
    place.write(".prettierrc", "{}")
    assert "asks again" in place.run("trust", "--list").out
    assert "prettier (.prettierrc), and can run code of the project" in place.run("trust", "--yes").err


def test_preset_that_runs_code_of_the_project_is_left_out_until_the_folder_is_trusted(
    place: Place, scripted_server: StartServer
):
    place.write("node_modules/.bin/prettier", "#!/bin/sh\ntouch ran\n").chmod(0o755)
    place.write(".prettierrc", "{}")
    script = (call("write", path="a.js", content="x\n"), FINISH)
    place.use(scripted_server(*script, *script).url)
    place.variables["AGENT_AFTER_EDIT"] = "prettier"

    wary = place.run("run", "-p", "Work")
    assert wary.code == 0
    assert "prettier is left out" in wary.err
    assert not (place.workspace / "ran").exists()

    (place.workspace / "a.js").unlink()
    assert place.run("trust", "--yes").code == 0
    assert place.run("run", "-p", "Work").code == 0
    assert (place.workspace / "ran").exists()


def test_entry_of_a_clone_does_not_run(place: Place, scripted_server: StartServer):
    place.write(".agent/config.toml", '[[after_edit]]\nglob = "*"\ncheck = "touch ran"\n')
    place.use(scripted_server(UGLY, FINISH).url)
    done = place.run("run", "-p", "Work")
    assert done.code == 0
    assert "after_edit" in done.err
    assert not (place.workspace / "ran").exists()


def test_missing_program_is_one_notice_in_a_run(place: Place, scripted_server: StartServer):
    steps = [call("write", path=f"{name}.txt", content="x\n") for name in "abc"]
    place.use(scripted_server(*steps, FINISH).url)
    place.config.mkdir()
    (place.config / "config.toml").write_text(
        '[[after_edit]]\nglob = "*.txt"\ncheck = "no-such-tool {file}"\n'
    )
    done = place.run("run", "-p", "Work", "--output", "jsonl")
    assert done.code == 0
    notices = [record["text"] for record in done.records if record["type"] == "notice"]
    assert len([text for text in notices if "no-such-tool" in text]) == 1
