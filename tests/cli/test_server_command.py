"""`agent server command`: what would be run, and what is said where it could not be."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.core.errors import ExitCode
from tests.server import gguf_models

HELP = Path(__file__).parents[1] / "server" / "cases" / "help"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person without settings, profiles or a llama-server."""
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    for name in ("AGENT_MODELS_FOLDER", "AGENT_PROFILE", "AGENT_SERVER_URL", "AGENT_SERVER_BINARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def profile(home: Path, name: str, text: str) -> None:
    folder = home / "config" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text, "utf-8")


def llama_server(home: Path, help_name: str) -> Path:
    """A llama-server on the PATH that has nothing but its help."""
    path = home / "bin" / "llama-server"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable}\nprint(open({str(HELP / help_name)!r}).read())\n", "utf-8")
    path.chmod(0o755)
    return path


def test_one_line_holds_the_model_folder_host_and_port_of_the_flags(capsys: pytest.CaptureFixture[str]):
    options = ["--dialect", "bee-0.3", "--models", "my models", "--host", "0.0.0.0", "--port", "9"]
    assert run(["server", "command", "gemma4-31b", *options, "--one-line"]) == 0
    words = shlex.split(capsys.readouterr().out)
    assert words[:3] == ["llama-server", "-m", "my models/gemma-4-31B-it-Q4_K_S.gguf"]
    assert words[words.index("--host") :][:4] == ["--host", "0.0.0.0", "--port", "9"]


def test_script_has_one_flag_a_line_and_says_what_is_missing(capsys: pytest.CaptureFixture[str]):
    assert run(["server", "command", "gemma4-31b-dflash", "--dialect", "llama.cpp"]) == 0
    output, notes = capsys.readouterr()
    assert sum("--spec-draft-n-max 15" in line for line in output.splitlines()) == 1
    assert "warning: cross_context is left out" in notes
    assert "agent model pull gemma4-31b-dflash" in notes
    assert "note: for llama.cpp" in notes


def test_command_says_what_the_program_adds_when_it_starts_a_server_itself(
    capsys: pytest.CaptureFixture[str],
):
    assert run(["server", "command", "gemma4-31b-dflash"]) == 0
    notes = capsys.readouterr().err
    assert "note: `agent server start` adds a key file by itself" in notes
    assert "`agent profile new NAME --from gemma4-31b-dflash`" in notes


def test_file_that_has_no_source_is_for_the_person_to_supply(home: Path, capsys: pytest.CaptureFixture[str]):
    text = 'engine = "llama-server"\n[target]\nfile = "own.gguf"\n'
    profile(home, "mine", text)
    for command in (["model", "pull", "mine"], ["server", "fit", "mine"]):
        assert run(command) == ExitCode.MODEL_FILE
        told = capsys.readouterr().err
        assert f"put it at {home / 'data' / 'models' / 'own.gguf'}" in told
        assert "`agent profile new NAME --from mine`" in told
        assert "model pull" not in told


@pytest.mark.parametrize(("help_name", "window"), [("beellama-may.txt", 64), ("llama.cpp.txt", None)])
def test_fit_counts_what_the_program_at_hand_keeps_for_a_drafter(
    help_name: str, window: int | None, home: Path, capsys: pytest.CaptureFixture[str]
):
    models = home / "data" / "models"
    models.mkdir(parents=True)
    gguf_models.dense(models / "t.gguf")
    gguf_models.dflash(models / "d.gguf")
    llama_server(home, help_name)
    files = '[target]\nfile = "t.gguf"\n[draft]\nfile = "d.gguf"\n'
    drafting = '[speculation]\nkind = "dflash"\ncross_context = 64\n'
    profile(home, "mine", f'engine = "llama-server"\n{files}{drafting}')
    assert run(["server", "fit", "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["draft_window"] == window


def test_fit_of_a_missing_file_names_the_profile_in_its_hint(capsys: pytest.CaptureFixture[str]):
    assert run(["server", "fit", "gemma4-31b"]) == ExitCode.MODEL_FILE
    told = capsys.readouterr().err
    assert "`agent model pull gemma4-31b`" in told
    assert "`agent server fit gemma4-31b --online`" in told


def test_what_the_server_cannot_do_is_bad_usage_and_prints_no_command(capsys: pytest.CaptureFixture[str]):
    assert run(["server", "command", "qwen3.6-27b-dflash-speed", "--dialect", "llama.cpp"]) == ExitCode.USAGE
    output, notes = capsys.readouterr()
    assert output == ""
    assert 'refused: llama.cpp does not know kv_type_k = "turbo3"' in notes
    assert 'hint: set kv_type_k = "q4_0"' in notes


def test_json_holds_refusals_too(capsys: pytest.CaptureFixture[str]):
    options = ["--dialect", "ik", "--json"]
    assert run(["server", "command", "qwen3.6-27b-dflash-speed", *options]) == ExitCode.USAGE
    table = json.loads(capsys.readouterr().out)
    assert {notice["code"] for notice in table["refusals"]} == {"kv_type_k", "kv_type_v"}
    assert table["server"] == "ik_llama.cpp"


def test_named_binary_is_asked_and_named(home: Path, capsys: pytest.CaptureFixture[str]):
    path = llama_server(home, "ik_llama.cpp.txt")
    assert run(["server", "command", "gemma4-31b-dflash", "--binary", str(path), "--one-line"]) == 0
    words = shlex.split(capsys.readouterr().out)
    assert words[0] == str(path)
    assert "dflash:n_max=15,cross_ctx=1024" in words


def test_binary_on_the_path_comes_before_what_the_profile_was_written_for(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    llama_server(home, "llama.cpp.txt")
    assert run(["server", "command", "gemma4-31b-dflash", "--one-line"]) == 0
    assert "draft-dflash" in capsys.readouterr().out


def test_without_a_binary_the_profile_says_which_family_it_is_for(capsys: pytest.CaptureFixture[str]):
    assert run(["server", "command", "gemma4-31b-dflash", "--one-line"]) == 0
    output, notes = capsys.readouterr()
    assert "--spec-type dflash" in output
    assert "BeeLlama before 0.4" in notes


def test_profile_of_ones_own_is_found(home: Path, capsys: pytest.CaptureFixture[str]):
    profile(home, "mine", 'extends = "vllm"\nmodel = "maker/big"\ndraft_model = "maker/small"\n')
    assert run(["server", "command", "mine", "--one-line"]) == 0
    assert capsys.readouterr().out.startswith("vllm serve maker/big ")


def test_file_that_the_server_will_miss_is_named(home: Path, capsys: pytest.CaptureFixture[str]):
    profile(home, "mine", 'extends = "gemma4-31b"\nslot_save_path = "/nowhere/slots"\n')
    assert run(["server", "command", "mine", "--dialect", "llama.cpp"]) == 0
    assert "note: /nowhere/slots is not there" in capsys.readouterr().err


def test_embedded_profile_is_shown_in_words_of_a_server_with_a_note(capsys: pytest.CaptureFixture[str]):
    assert run(["server", "command", "embedded", "--dialect", "llama.cpp", "--one-line"]) == 0
    output, notes = capsys.readouterr()
    assert "--spec-ngram-mod-n-match 24" in output
    assert "served inside the program" in notes


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--port", "0"], "is no port"),
        (["--port", "99999"], "is no port"),
        (["--dialect", "llama"], "--dialect takes "),
        (["--dialect", "ik", "--binary", "x"], "not allowed with"),
    ],
)
def test_wrong_option_is_told_in_one_line(
    options: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["server", "command", "gemma4-31b", *options]) == ExitCode.USAGE
    assert complaint in capsys.readouterr().err


def test_binary_that_is_not_there_is_bad_usage(capsys: pytest.CaptureFixture[str]):
    assert run(["server", "command", "gemma4-31b", "--binary", "nowhere"]) == ExitCode.USAGE
    assert "there is no program nowhere" in capsys.readouterr().err


def test_binary_of_the_settings_is_the_one_that_is_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    path = llama_server(home, "ik_llama.cpp.txt")
    monkeypatch.setenv("AGENT_SERVER_BINARY", str(path))
    assert run(["server", "command", "gemma4-31b-dflash", "--one-line"]) == 0
    assert shlex.split(capsys.readouterr().out)[0] == str(path)


def test_start_of_a_server_that_is_started_by_hand_shows_how(capsys: pytest.CaptureFixture[str]):
    assert run(["server", "start", "vllm"]) == ExitCode.USAGE
    assert "agent server command vllm" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["fit", "command"])
def test_profile_of_the_settings_is_meant_where_none_is_named(
    action: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    named = run(["server", action, "gemma4-31b"]), capsys.readouterr()
    monkeypatch.setenv("AGENT_PROFILE", "gemma4-31b")
    assert (run(["server", action]), capsys.readouterr()) == named
    assert "gemma" in "".join(named[1])
