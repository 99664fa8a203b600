"""`agent setup` and `agent doctor` as a newcomer types them, with a llama-server that is a fake."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Done, Place
from tests.fakes.llama_binary import FakeBinary, make_llama_binary
from tests.real.tiny_pair import write_tiny_pair

pytestmark = pytest.mark.timeout(300)

PROFILE = """\
engine = "llama-server"
context = 4096
threads = 1
[target]
file = "target.gguf"
[draft]
file = "draft.gguf"
[speculation]
kind = "dflash"
[tools]
protocol = "native"
"""
CALL = '{"name": "glob", "arguments": {"pattern": "*.md"}}'


@pytest.fixture
def binary(place: Place) -> Iterator[FakeBinary]:
    """A fake llama-server on which the profile `mine` runs; what it started is killed at the end."""
    write_tiny_pair(models_of(place))
    place.profile("mine", PROFILE)
    made = make_llama_binary(place.folder / "bin", any_model=True)
    place.variables |= {"AGENT_SERVER_BINARY": str(made.path)}
    yield made
    for start in made.starts():
        with suppress(ProcessLookupError):
            os.kill(start["pid"], signal.SIGKILL)


def models_of(place: Place) -> Path:
    folder = place.folder / "data" / "models"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def settings_of(place: Place) -> str:
    path = place.config / "config.toml"
    return path.read_text("utf-8") if path.exists() else ""


def found_by(done: Done) -> dict[str, dict[str, Any]]:
    return {finding["code"]: finding for finding in json.loads(done.out)["findings"]}


def doctor(place: Place, *arguments: str) -> Done:
    return place.run("doctor", "--profile", "mine", "--json", *arguments)


def test_dry_run_prints_a_proposal_and_changes_nothing(place: Place, binary: FakeBinary):
    done = place.run("setup", "--profile", "mine", "--dry-run")
    assert done.code == 0
    assert "Proposal: mine" in done.out
    assert 'writes      profile = "mine" in ' in done.out
    assert (binary.starts(), settings_of(place), place.state.exists()) == ([], "", False)


def test_without_a_terminal_the_command_to_type_is_told(place: Place, binary: FakeBinary):
    done = place.run("setup", "--profile", "mine")
    assert done.code == 0
    assert done.err == "nothing was done; to do it: agent setup --profile mine --yes\n"
    assert (binary.starts(), settings_of(place)) == ([], "")


def test_yes_gets_it_running_measures_it_and_goes_on_the_second_time(place: Place, binary: FakeBinary):
    done = place.run("setup", "--profile", "mine", "--yes", "--json")
    assert done.code == 0, done.err
    table = json.loads(done.out)
    assert [(step["step"], step["state"]) for step in table["steps"]] == [
        ("install", "there"), ("pull", "there"), ("start", "done"), ("measure", "done"), ("write", "done"),
    ]  # fmt: skip
    assert table["measured"]["decode_rate"] == 130
    assert settings_of(place) == 'profile = "mine"\n'
    again = place.run("setup", "--yes", "--json")
    assert [step["state"] for step in json.loads(again.out)["steps"]] == ["there"] * 4 + ["done"]
    assert len(binary.starts()) == 1
    assert not (place.state / "setup.json").exists()


def test_server_that_does_not_start_is_explained_and_can_be_gone_on_with(place: Place, binary: FakeBinary):
    binary.tell(any_model=True, die_loading="error: no room")
    done = place.run("setup", "--profile", "mine", "--yes")
    assert done.code == 5
    assert "stopped at: start. What was done is kept; to go on: agent setup" in done.err
    assert settings_of(place) == ""
    binary.tell(any_model=True)
    assert place.run("setup", "--yes").code == 0
    assert settings_of(place) == 'profile = "mine"\n'


def test_missing_file_without_a_source_is_refused_before_anything_is_begun(place: Place, binary: FakeBinary):
    (models_of(place) / "target.gguf").unlink()
    done = place.run("setup", "--profile", "mine", "--yes")
    assert done.code == 6
    assert done.complaint == "agent: mine: you have to supply target.gguf: its profile knows no source for it"
    assert not (place.state / "setup.json").exists()


def test_interrupted_setup_says_how_to_go_on(place: Place, binary: FakeBinary):
    binary.tell(any_model=True, never_ready=True)
    process = place.start("setup", "--profile", "mine", "--yes")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("starting"):
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "to go on: agent setup" in err
    assert json.loads((place.state / "setup.json").read_text("utf-8")) == {"profile": "mine"}


def test_unknown_profile_is_bad_usage(place: Place):
    done = place.run("setup", "--profile", "mime", "--dry-run")
    assert (done.code, done.complaint) == (2, "agent: unknown profile 'mime'")


def test_doctor_is_content_before_anything_runs_and_starts_nothing(place: Place, binary: FakeBinary):
    done = doctor(place)
    assert done.code == 0, done.out
    found = found_by(done)
    assert {found[code]["level"] for code in ("settings", "profile", "engine", "draft", "model-file")} == {
        "ok"
    }
    assert found["baseline"]["remedy"] == "agent bench mine"
    assert "--live" in found["live"]["message"]
    assert (binary.starts(), place.state.exists()) == ([], False)


def test_doctor_asks_a_running_server(place: Place, binary: FakeBinary):
    assert place.run("setup", "--profile", "mine", "--yes").code == 0
    done = doctor(place)
    found = found_by(done)
    assert found["drafting"]["message"].endswith("50% accepted")
    assert found["speed"]["message"] == "130.0 tok/s, 130.0 when it was measured last"
    assert found["prefix"]["level"] == "ok", found["prefix"]
    assert found["tool-call"]["level"] == "warning"  # the fake only talks
    assert done.code == 0


def test_doctor_tells_that_a_server_has_become_slow(place: Place, binary: FakeBinary):
    assert place.run("setup", "--profile", "mine", "--yes").code == 0
    assert place.run("server", "stop").code == 0
    binary.tell(any_model=True, drafting_speed=50.0)
    found = found_by(doctor(place, "--live"))
    assert (found["speed"]["level"], len(binary.starts())) == ("warning", 2)


def test_doctor_tells_that_nothing_is_drafted(place: Place, binary: FakeBinary):
    binary.tell(any_model=True, speculation="idle")
    done = doctor(place, "--live")
    assert found_by(done)["drafting"]["level"] == "problem"
    assert done.code == 1


def test_doctor_names_what_is_missing_with_the_command_for_it(place: Place, binary: FakeBinary):
    for path in models_of(place).glob("*.gguf"):
        path.unlink()
    place.variables["AGENT_SERVER_BINARY"] = ""
    place.variables["PATH"] = "/nowhere"
    done = place.run("doctor", "--profile", "mine")
    assert done.code == 1
    lines = [line for line in done.out.splitlines() if line.startswith("PROBLEM")]
    assert any(
        "none is installed" in line and "-> get one with `agent server install" in line for line in lines
    )
    assert any("target.gguf is not in" in line for line in lines)
    assert "warning git is not installed" in done.out


def test_doctor_finds_a_mistake_in_the_settings(place: Place):
    (place.config).mkdir()
    (place.config / "config.toml").write_text('profil = "embedded"\n', "utf-8")
    done = place.run("doctor", "--json")
    found = found_by(done)
    assert done.code == 1
    assert "config.toml:1" in found["settings"]["message"]
    assert "profile" in found["settings"]["message"] + found["settings"]["remedy"]


def test_doctor_finds_what_a_killed_server_left_behind(place: Place, binary: FakeBinary):
    assert place.run("server", "start", "mine").code == 0
    [start] = binary.starts()
    os.kill(start["pid"], signal.SIGKILL)
    found = found_by(doctor(place))
    assert found["record"]["level"] == "warning"
    assert found["record"]["remedy"].startswith("agent server stop mine")


def test_doctor_finds_open_folders_and_stray_variables(place: Place, binary: FakeBinary):
    place.state.mkdir()
    place.state.chmod(0o755)
    place.variables["LLAMA_ARG_CTX_SIZE"] = "64"
    found = found_by(doctor(place))
    assert found["state-folder"]["remedy"] == f"chmod 700 {place.state}"
    assert found["llama-variables"]["remedy"] == "unset LLAMA_ARG_CTX_SIZE"
    assert "64" not in found["llama-variables"]["message"]
