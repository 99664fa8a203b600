"""`agent mcp` as a person types it."""

import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.session.store import EVENTS_NAME, sessions_folder
from tests.fakes.oauth_mcp_server import oauth_mcp_server, visit
from tests.mcp.conftest import SERVER


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "state", "data"):
        monkeypatch.setenv(f"AGENT_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def add(name: str, *habits: str) -> int:
    return run(["mcp", "add", name, "--env", "KEY=s3cr3t", "--", sys.executable, str(SERVER), *habits])


def test_added_server_is_tried_and_listed_with_what_it_costs(home: Path, capsys: pytest.CaptureFixture[str]):
    assert add("fake", "tools=50") == 0
    assert "fake works: fake 1" in capsys.readouterr().err
    assert run(["mcp", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["servers"][0]["tools"] == 51
    assert listed["servers"][0]["tokens"] > 1000
    assert listed["prompt_tokens"] <= 300


def test_server_that_fails_says_so_with_its_last_words(home: Path, capsys: pytest.CaptureFixture[str]):
    assert add("bad", "dies-at-start") == 1
    assert "the disk is on fire" in capsys.readouterr().err
    assert run(["mcp", "logs", "bad"]) == 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d the disk is on fire\n", capsys.readouterr().out)


def test_server_that_is_there_is_said_to_be_replaced_with_what_it_was(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["mcp", "add", "one", "--no-test", "--", "first-program", "--flag"]) == 0
    assert "one is written to" in capsys.readouterr().err
    assert run(["mcp", "add", "one", "--no-test", "--env", "KEY=s3cr3t", "--", "second-program"]) == 0
    assert "; it was: first-program --flag\n" in capsys.readouterr().err
    assert run(["mcp", "add", "one", "--no-test", "--", "third"]) == 0
    said = capsys.readouterr().err
    assert "one is replaced in" in said
    assert "s3cr3t" not in said


def test_failure_shows_only_what_was_said_this_time(home: Path, capsys: pytest.CaptureFixture[str]):
    assert add("bad", "dies-at-start") == 1
    assert "the disk is on fire" in capsys.readouterr().err
    assert run(["mcp", "add", "bad", "--", "nosuchcmd"]) == 1
    assert "the disk is on fire" not in capsys.readouterr().err


def test_server_that_fails_is_kept_and_its_words_are_said_once(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["mcp", "add", "bad", "--", "nosuchcmd"]) == 1
    assert "it is kept all the same; `agent mcp remove bad` takes it out" in capsys.readouterr().err
    assert run(["mcp", "test", "bad"]) == 1
    assert capsys.readouterr().err.count("cannot start nosuchcmd") == 1


def test_values_of_secrets_are_never_shown(home: Path, capsys: pytest.CaptureFixture[str]):
    add("fake")
    for command in (
        ["mcp", "get", "fake"],
        ["mcp", "list"],
        ["config", "show"],
        ["config", "show", "--json"],
    ):
        assert run(command) == 0
    shown = capsys.readouterr()
    assert "s3cr3t" not in shown.out + shown.err
    assert "KEY" in shown.out


def test_signing_in_from_the_command_line_and_removing_the_server_forgets_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stdin", None)
    with oauth_mcp_server() as server:
        assert run(["mcp", "add", "one", "--url", server.mcp_url]) == 1
        assert "hint: `agent mcp login one` signs in" in capsys.readouterr().err
        with visiting(capsys):
            assert run(["mcp", "login", "one"]) == 0
        assert run(["mcp", "test", "one"]) == 0
        assert run(["mcp", "get", "one"]) == 0
        assert "signed in; `agent mcp logout one` forgets that" in capsys.readouterr().out
        assert run(["mcp", "remove", "one"]) == 0
        assert "the sign-in to it is forgotten, too" in capsys.readouterr().err
    assert not list((home / "data").rglob("*.json"))


@contextmanager
def visiting(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """A person who opens the address that is printed, as soon as it is there."""
    said: list[str] = []

    def look() -> None:
        for _ in range(3000):
            said.append(capsys.readouterr().err)
            found = [line for line in "".join(said).splitlines() if "/authorize?" in line]
            if found and "It leads back" in "".join(said):
                visit(found[0])
                return
            time.sleep(0.02)

    person = threading.Thread(target=look)
    person.start()
    yield
    person.join()


def test_removing_keeps_the_rest_of_the_file(home: Path):
    (home / "config").mkdir()
    file = home / "config" / "config.toml"
    before = "# mine\n[limits]\nmax_steps = 7 # few\n"
    file.write_text(before, "utf-8")
    assert run(["mcp", "add", "one", "--no-test", "--", "x", "-y"]) == 0
    assert run(["mcp", "add", "two", "--no-test", "--url", "https://example.org/mcp"]) == 0
    assert 'args = ["-y"]' in file.read_text("utf-8")
    assert run(["mcp", "remove", "one"]) == 0
    assert run(["mcp", "remove", "two"]) == 0
    text = file.read_text("utf-8")
    assert text.startswith(before)
    assert "example.org" not in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["add", "a b", "--", "x"],
        ["add", "one"],
        ["add", "one", "--url", "ftp://x"],
        ["add", "one", "--url", "https://x", "--", "y"],
        ["add", "one", "--env", "KEY", "--", "x"],
        ["add", "one", "--header", "A=b", "--", "x"],
        ["add", "one", "--env", "A=b", "--url", "https://x"],
        ["login", "none"],
        ["logout", "../x"],
        ["get", "none"],
        ["remove", "none"],
        ["test", "none"],
        ["logs", "../x"],
        ["import", "none.json"],
    ],
)
def test_mistake_is_told_in_one_line(home: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert run(["mcp", *arguments]) == 2
    assert capsys.readouterr().err.startswith("agent: ")
    assert not (home / "config").exists()


def test_servers_of_other_programs_are_shown_and_then_taken_over(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    claude = {"projects": {"/x": {"mcpServers": {"my server": {"command": "npx", "args": ["a"]}}}}}
    (home / ".claude.json").write_text(json.dumps(claude), "utf-8")
    (home / ".vscode").mkdir()
    docs = '"docs": {"type": "http", "url": "https://example.org/mcp",}'
    code = f'{{\n// mine\n"servers": {{{docs},\n"ask": {{"command": "${{input:x}}"}}}}}}'
    (home / ".vscode" / "mcp.json").write_text(code, "utf-8")
    (home / "opencode.json").write_text(
        '{"mcp": {"local": {"type": "local", "command": ["bun", "x"], "environment": {"A": "{env:A}"}}}}',
        "utf-8",
    )
    assert run(["mcp", "import"]) == 0
    assert not (home / "config").exists()
    assert run(["mcp", "import", "--yes"]) == 0
    text = (home / "config" / "config.toml").read_text("utf-8")
    assert all(f"[mcp.servers.{name}]" in text for name in ("my-server", "docs", "local"))
    assert 'A = "${A}"' in text
    assert "only its own program can fill in" in capsys.readouterr().err
    assert run(["mcp", "import"]) == 0
    assert "nothing new" in capsys.readouterr().err


def test_what_is_switched_off_elsewhere_is_taken_over_switched_off_and_stays_as_the_person_has_it(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    (home / "opencode.jsonc").write_text(
        '{"mcp": {"one": {"type": "local", "command": ["x"], "enabled": false}}} // mine', "utf-8"
    )
    assert run(["mcp", "import", "--yes"]) == 0
    assert "one: x" in capsys.readouterr().out
    text = (home / "config" / "config.toml").read_text("utf-8")
    assert "enabled = false" in text
    (home / "opencode.jsonc").write_text('{"mcp": {"one": {"type": "local", "command": ["y"]}}}', "utf-8")
    assert run(["mcp", "import", "--yes"]) == 0
    assert "nothing new" in capsys.readouterr().err
    assert (home / "config" / "config.toml").read_text("utf-8") == text
    assert run(["mcp", "list"]) == 0
    assert capsys.readouterr().out == "one  switched off\n"
    assert run(["mcp", "get", "one"]) == 2
    assert "is switched off" in capsys.readouterr().err


def test_cost_is_told_in_seconds_at_the_speed_that_was_measured_last_in_the_folder(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    assert add("fake", "tools=50") == 0
    folder = sessions_folder(home / "state", home) / "20260101-000000-000-abcdef"
    folder.mkdir(parents=True)
    step = {"type": "step_finished", "stats": {"prompt_tokens": 1000, "prompt_seconds": 4.0}}
    (folder / EVENTS_NAME).write_text(json.dumps(step) + "\n", "utf-8")
    capsys.readouterr()
    assert run(["mcp", "list", "--json"]) == 0
    [server] = json.loads(capsys.readouterr().out)["servers"]
    assert server["prefill_seconds"] == server["tokens"] / 250
    assert run(["mcp", "list"]) == 0
    assert f"{server['tokens'] / 250:.1f} s of prefill" in capsys.readouterr().out


def test_server_of_a_project_that_is_not_trusted_leads_to_the_command_that_trusts_it(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    (home / ".mcp.json").write_text('{"mcpServers": {"clock": {"command": "clock"}}}', "utf-8")
    assert run(["mcp", "test", "clock"]) == 2
    assert "hint: `agent trust` shows what it would start" in capsys.readouterr().err
    assert run(["mcp", "test", "clocks"]) == 2
    assert "there is no MCP server 'clocks'" in capsys.readouterr().err


def test_where_no_server_is_known_the_command_that_adds_one_is_named(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["mcp", "get", "time"]) == 2
    assert "hint: `agent mcp add time -- COMMAND` adds it" in capsys.readouterr().err
    assert run(["mcp", "add", "time"]) == 2
    assert "hint: docs/mcp.md has examples" in capsys.readouterr().err
