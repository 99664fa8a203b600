"""Which engine and profile is proposed for which machine."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.server.engines import EngineFacts, ServedModel
from tests.app.setup.rig import GIB, Machine, gpu, hardware

LM_STUDIO = EngineFacts(
    base_url="http://127.0.0.1:1234",
    engine="lm-studio",
    models=(ServedModel("small"), ServedModel("qwen-coder", context_tokens=8192)),
)


def kinds(machine: Machine, wanted: str = "") -> set[str]:
    return {obstacle.kind for obstacle in machine.proposal(wanted).option.obstacles}


def test_without_gpu_the_embedded_engine_is_proposed(machine: Machine):
    option = machine.proposal().option
    assert (option.profile, option.engine, option.is_usable) == ("embedded", "embedded", True)
    assert option.download_bytes == 1_117_320_768


@pytest.mark.parametrize(
    ("gib", "profile"), [(24, "gemma4-31b-dflash"), (16, "qwen3-14b"), (12, "qwen3-14b"), (8, "embedded")]
)
def test_gpu_decides_the_size_of_the_model(machine: Machine, gib: int, profile: str):
    machine.hardware = hardware(gpu(gib))
    option = machine.proposal().option
    assert option.profile == profile
    assert {file.state for file in option.files} == {"download"}
    assert option.download_bytes > 0


def test_model_that_is_there_wins_over_one_of_its_size_that_has_to_be_fetched(machine: Machine):
    machine.hardware = hardware(gpu(24))
    for name in ("Qwen3.6-27B-Q4_K_M.gguf", "Qwen3.6-27B-DFlash-Q4_K_M.gguf"):
        machine.add_model(name)
    option = machine.proposal().option
    assert option.profile == "qwen3.6-27b-dflash"
    assert [file.state for file in option.files] == ["there", "there"]


def test_gpu_that_is_in_use_does_not_count_as_free(machine: Machine):
    busy = replace(gpu(24), free_bytes=4 * GIB)
    machine.hardware = hardware(busy)
    assert machine.proposal().option.profile == "embedded"
    assert kinds(machine, "gemma4-31b-dflash") >= {"memory"}


def test_sizes_that_follow_from_a_name_are_marked(machine: Machine):
    machine.hardware = hardware(gpu(24))
    target, draft = machine.proposal().option.files
    assert (target.is_guess, draft.is_guess) == (True, True)
    assert 17e9 < target.bytes < 19e9
    assert 0.8e9 < draft.bytes < 1.6e9


def test_what_has_to_be_built_is_told_or_what_is_missing_for_that(machine: Machine):
    machine.hardware = hardware(gpu(24))
    option = machine.proposal().option
    assert option.build is not None
    assert option.build.what.startswith("beellama@")
    assert [one.kind for one in option.obstacles] == ["tool"]
    assert "cannot be built here: " in option.obstacles[0].message
    assert option.obstacles[0].hint


def test_file_without_a_source_has_to_be_supplied_by_the_person(machine: Machine):
    folder = machine.folder / "config" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('engine = "llama-server"\n[target]\nfile = "own.gguf"\n', "utf-8")
    obstacle = machine.proposal("mine").option.obstacles[-1]
    assert obstacle.kind == "file"
    assert str(machine.models) in obstacle.hint


def test_file_of_another_program_is_used(machine: Machine):
    wanted = "Qwen3-14B-Q4_K_M.gguf"
    path = machine.add_model(wanted, machine.folder / "home" / ".lmstudio" / "models" / "a" / "b")
    machine.hardware = hardware(gpu(16))
    [file] = machine.proposal().option.files
    assert (file.state, file.found) == ("elsewhere", path)


def test_file_of_the_same_name_and_another_size_is_not_taken_for_it(machine: Machine):
    wanted = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    machine.add_model(wanted, machine.folder / "home" / "models")
    [file] = machine.proposal().option.files
    assert file.state == "download"


def test_full_disk_is_in_the_way(machine: Machine):
    machine.hardware = hardware(disk_gb=1)
    assert kinds(machine, "embedded") == {"disk"}
    assert machine.proposal().option.profile == "embedded-small"


def test_little_memory_leads_to_a_smaller_model(machine: Machine):
    machine.hardware = hardware(ram_gib=1.5)
    assert machine.proposal().option.profile == "embedded-small"


def test_running_server_is_proposed_with_its_address_and_model(machine: Machine):
    machine.running = [LM_STUDIO]
    proposal = machine.proposal()
    option = proposal.option
    assert (option.profile, option.url) == ("lm-studio-1234", "http://127.0.0.1:1234")
    assert option.model == "qwen-coder"
    assert proposal.alternatives[0].profile == "embedded"


def test_running_server_that_wants_a_key_is_only_mentioned(machine: Machine):
    machine.running = [EngineFacts(base_url="http://127.0.0.1:8080", needs_key=True)]
    proposal = machine.proposal()
    assert proposal.option.profile == "embedded"
    assert "wants a key" in " ".join(proposal.notes)


def test_profile_that_was_written_for_a_running_server_is_found_again(machine: Machine):
    folder = machine.folder / "config" / "profiles"
    folder.mkdir(parents=True)
    (folder / "studio.toml").write_text('extends = "remote"\nurl = "http://127.0.0.1:1234"\n', "utf-8")
    machine.running = [LM_STUDIO]
    assert machine.proposal().option.profile == "studio"


def test_what_the_settings_name_comes_first(machine: Machine):
    machine.configure('profile = "embedded-draft"\n')
    option = machine.proposal().option
    assert (option.profile, option.why) == ("embedded-draft", "your settings name it")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_running_server_whose_address_the_settings_name_goes_before_their_profile(
    host: str, machine: Machine
):
    machine.configure(f'profile = "embedded-draft"\n[server]\nurl = "http://{host}:1234/v1"\n')
    machine.running = [LM_STUDIO]
    option = machine.proposal().option
    assert (option.profile, option.why) == ("lm-studio-1234", "your settings name its address")


def test_address_in_a_variable_is_said_to_win_over_what_is_written(machine: Machine):
    machine.variables["AGENT_SERVER_URL"] = "http://box:8080"
    assert "AGENT_SERVER_URL=http://box:8080" in " ".join(machine.proposal().notes)


def test_server_of_the_settings_that_is_gone_gives_way(machine: Machine):
    folder = machine.folder / "config" / "profiles"
    folder.mkdir(parents=True)
    (folder / "studio.toml").write_text('extends = "remote"\nurl = "http://127.0.0.1:1234"\n', "utf-8")
    machine.configure('profile = "studio"\n')
    assert machine.proposal().option.profile == "studio"
    machine.silent["http://127.0.0.1:1234"] = "no server answers"
    assert machine.proposal().option.profile == "embedded"
    assert machine.proposal("studio").option.obstacles[0].message == "no server answers"


def test_interrupted_setup_goes_on_with_its_own_profile(machine: Machine):
    assert machine.proposal(unfinished="embedded-small").option.profile == "embedded-small"
    assert machine.proposal(unfinished="gone").option.profile == "embedded"


def test_named_profile_wins(machine: Machine):
    machine.configure('profile = "embedded-draft"\n')
    assert machine.proposal("embedded-small", "embedded").option.profile == "embedded-small"


@pytest.mark.parametrize(("name", "words"), [("nope", "unknown profile"), ("vllm", "not set up from here")])
def test_profile_that_cannot_be_set_up_is_refused(machine: Machine, name: str, words: str):
    with pytest.raises(UsageError, match=words):
        machine.proposal(name)


def test_broken_profile_of_the_person_does_not_stop_the_others(machine: Machine):
    folder = machine.folder / "config" / "profiles"
    folder.mkdir(parents=True)
    Path(folder / "broken.toml").write_text("engine = 3\n", "utf-8")
    assert machine.proposal().option.profile == "embedded"


def test_one_of_three_alternatives_can_be_had_at_once(machine: Machine):
    machine.hardware = hardware(gpu(24))
    alternatives = machine.proposal().alternatives
    assert [one.profile for one in alternatives][-1] == "embedded"
    assert [one.is_usable for one in alternatives] == [False, False, True]
