"""Checks that only read, on machines that are made up."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.app.doctor.examine import CHECKS, examine, patient_for
from agent.app.doctor.finding import Finding, Outside, Patient, examined
from agent.core.errors import UsageError
from agent.server.engines import EngineFacts, ServedModel
from agent.server.hardware import Hardware
from tests.app.setup.rig import Machine, gpu, hardware
from tests.conftest import StartEngine

Look = Callable[..., list[Finding]]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def look(machine: Machine) -> Look:
    """The findings of one code on that machine."""

    def find(code: str, profile: str = "", **changes: Any) -> list[Finding]:
        outside = Outside(
            hardware=lambda _: machine.hardware,
            running=lambda: machine.running,
            environment=machine.environment,
            root=machine.folder / "root",
        )
        patient = patient_for(outside, profile)
        return [finding for finding in examine(patient) if finding.code == code]

    return find


def test_every_remedy_is_there_where_something_is_wrong(machine: Machine):
    machine.hardware = hardware(gpu(24))
    outside = Outside(hardware=lambda _: machine.hardware, running=list, environment=machine.environment)
    found = list(examine(patient_for(outside, "gemma4-31b-dflash")))
    assert [one for one in found if one.level != "ok" and not one.remedy] == []
    assert [one for one in found if one.level == "ok" and one.remedy] == []
    assert {one.level for one in found} == {"ok", "warning", "problem"}
    assert [path for path in machine.folder.rglob("*") if path.is_file()] == []


def test_programs_that_are_missing_are_warnings(look: Look):
    assert [look(code)[0].level for code in ("git", "ripgrep")] == ["warning", "warning"]


def test_card_whose_driver_is_silent_is_noticed(machine: Machine, look: Look):
    device = machine.folder / "root" / "sys" / "bus" / "pci" / "devices" / "0000:01:00.0"
    device.mkdir(parents=True)
    (device / "class").write_text("0x030000\n", "ascii")
    (device / "vendor").write_text("0x10de\n", "ascii")
    [finding] = look("gpu")
    assert "driver does not answer" in finding.message


def test_what_the_hardware_could_not_tell_is_passed_on(machine: Machine, look: Look):
    machine.hardware = Hardware("A CPU", 2, 2, 1, 1, 1, (), ("the NVIDIA driver did not answer within 4 s",))
    assert look("gpu")[0].level == "warning"


def test_server_of_somebody_else_on_the_port_is_a_problem_that_names_it(machine: Machine, look: Look):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        folder = machine.folder / "config" / "profiles"
        folder.mkdir(parents=True)
        text = f'engine = "llama-server"\nport = {port}\n[target]\nfile = "a.gguf"\n'
        (folder / "mine.toml").write_text(text, "utf-8")
        model = ServedModel("m")
        machine.running = [
            EngineFacts(base_url=f"http://127.0.0.1:{port}", engine="vllm", models=(model,), model=model)
        ]
        [finding] = look("port", "mine")
    assert finding.level == "problem"
    assert "vLLM" in finding.message


def test_file_that_is_no_model_is_a_problem(machine: Machine, look: Look):
    folder = machine.folder / "config" / "profiles"
    folder.mkdir(parents=True)
    text = 'engine = "llama-server"\n[target]\nfile = "a.gguf"\n'
    (folder / "mine.toml").write_text(text, "utf-8")
    machine.add_model("a.gguf").write_text("<html>not found</html>", "utf-8")
    [finding] = look("model-file", "mine")
    assert finding.level == "problem"


def test_copy_with_other_bytes_is_a_problem_that_no_download_mends(machine: Machine, look: Look):
    folder = machine.folder / "config" / "profiles"
    folder.mkdir(parents=True)
    copy = '[[target.sources]]\nkind = "file"\npath = "copy.gguf"\n'
    text = f'engine = "llama-server"\n[target]\nfile = "a.gguf"\nsha256 = "{"ab" * 32}"\nbytes = 4\n{copy}'
    (folder / "mine.toml").write_text(text, "utf-8")
    (folder / "copy.gguf").write_text("GGUF", "utf-8")
    [finding] = look("model-file", "mine")
    assert finding.level == "problem"
    assert finding.message == f"{folder / 'copy.gguf'} has another sha256 than the profile names"
    assert "agent model" not in finding.remedy


def test_window_that_neither_the_server_nor_anybody_else_tells_is_a_problem(
    machine: Machine, look: Look, other_engine: StartEngine
):
    folder = machine.folder / "config" / "profiles"
    folder.mkdir(parents=True)
    box = f'engine = "remote"\nurl = "{other_engine("bare").url}"\n'
    (folder / "box.toml").write_text(box, "utf-8")
    (folder / "told.toml").write_text(f"{box}context = 9000\n", "utf-8")
    [finding] = look("window", "box")
    assert finding.level == "problem"
    assert "server.context" in finding.remedy
    assert look("window", "told") == []
    machine.variables["AGENT_SERVER_CONTEXT"] = "9000"
    assert look("window", "box") == []


def test_running_server_that_wants_a_key_is_not_offered_to_the_set_up(machine: Machine, look: Look):
    machine.running = [EngineFacts(base_url="http://127.0.0.1:8080", engine="llama-server", needs_key=True)]
    [finding] = look("other-server")
    assert "api_key_env" in finding.message
    assert "agent setup" not in finding.message


def test_server_of_the_settings_is_asked_with_the_key_and_model_of_the_settings(
    machine: Machine, look: Look, other_engine: StartEngine
):
    server = other_engine("vllm", models=("one", "two"), api_key="sesam")
    machine.variables |= {"AGENT_SERVER_URL": server.url, "AGENT_SERVER_API_KEY_ENV": "BOX_KEY"}
    machine.variables |= {"AGENT_SERVER_MODEL": "two", "BOX_KEY": "sesam"}
    [finding] = look("engine")
    assert finding.level == "ok", finding.message
    del machine.variables["BOX_KEY"]
    [finding] = look("engine")
    assert (finding.level, finding.remedy) == ("problem", "set BOX_KEY")


def test_broken_profile_that_is_not_in_use_is_a_warning(machine: Machine, look: Look):
    folder = machine.folder / "config" / "profiles"
    folder.mkdir(parents=True)
    (folder / "broken.toml").write_text("engine = 3\n", "utf-8")
    assert [one.level for one in look("other-profile")] == ["warning"]


def test_unknown_profile_is_a_problem(look: Look):
    [finding] = look("profile", "nope")
    assert (finding.level, finding.message) == ("problem", "unknown profile 'nope'")


def test_check_that_fails_itself_is_one_finding(machine: Machine):
    def bad_luck(patient: Patient) -> Iterator[Finding]:
        raise RuntimeError("boo")

    def wrong_input(patient: Patient) -> Iterator[Finding]:
        raise UsageError("no", "do it")

    patient = Patient(outside=Outside(environment={}), loaded=None, profile=None, hardware=hardware())
    [first] = examined(bad_luck, patient)
    [second] = examined(wrong_input, patient)
    assert (first.level, first.code) == ("warning", "bad-luck")
    assert (second.level, second.code, second.remedy) == ("problem", "wrong-input", "do it")


def test_checks_have_names_of_their_own():
    assert len({check.__name__ for check in CHECKS}) == len(CHECKS)


def test_models_folder_of_the_environment_counts_also_with_broken_settings(machine: Machine, look: Look):
    folder = machine.folder / "config"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text("zebra = 1\n", "utf-8")
    machine.variables["AGENT_MODELS_FOLDER"] = str(machine.folder / "elsewhere")
    assert str(machine.folder / "elsewhere") in look("disk")[0].message


def test_variable_that_counts_for_nothing_is_a_warning_with_what_was_meant(machine: Machine, look: Look):
    machine.variables |= {"AGENT_SERVR_ULR": "x", "AGENT_ID": "7"}
    [finding] = look("variables")
    assert "AGENT_SERVR_ULR" in finding.message
    assert finding.remedy == "did you mean AGENT_SERVER_URL?"
