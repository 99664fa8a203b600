"""Adding the embedded engine to an environment, or saying who has to do it."""

import io
import json
import sys
from pathlib import Path

import pytest

from agent.core.errors import ServerError, UsageError
from agent.server.engine_extra import Environment, command_for, engine_requirement, install_engine


def place(tmp_path: Path, **changes) -> Environment:
    facts = {
        "python": tmp_path / "python",
        "prefix": tmp_path,
        "managed": False,
        "has_pip": True,
        "uv": None,
        "version": lambda: None,
        "requirement": lambda: "xllamacpp>=1",
        **changes,
    }
    return Environment(**facts)


def fake_python(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "python"
    path.write_text(f"#!{sys.executable}\n{script}\n", "utf-8")
    path.chmod(0o755)
    return path


def test_pip_of_this_environment_is_used(tmp_path: Path):
    command = command_for(place(tmp_path))
    assert command == [str(tmp_path / "python"), "-P", "-m", "pip", "install", "--no-input", "xllamacpp>=1"]


def test_without_pip_uv_installs_into_this_environment(tmp_path: Path):
    command = command_for(place(tmp_path, has_pip=False, uv="/bin/uv"))
    assert command == ["/bin/uv", "pip", "install", "--python", str(tmp_path / "python"), "xllamacpp>=1"]


@pytest.mark.parametrize(
    ("note", "command"),
    [
        ("uv-receipt.toml", "uv tool install 'dflash-agent[embedded]'"),
        ("pipx_metadata.json", "pipx inject dflash-agent 'xllamacpp>=1'"),
    ],
)
def test_an_environment_of_another_program_is_left_to_it(tmp_path: Path, note: str, command: str):
    (tmp_path / note).touch()
    with pytest.raises(UsageError) as caught:
        command_for(place(tmp_path))
    assert caught.value.hint == command


def test_a_python_of_the_system_is_left_alone(tmp_path: Path):
    with pytest.raises(UsageError, match="belongs to the system") as caught:
        command_for(place(tmp_path, managed=True))
    assert "pipx install" in caught.value.hint


def test_with_neither_pip_nor_uv_it_says_how_to_get_one(tmp_path: Path):
    with pytest.raises(UsageError) as caught:
        command_for(place(tmp_path, has_pip=False))
    assert "ensurepip" in caught.value.hint


def test_what_is_there_is_not_installed_again(tmp_path: Path):
    there = place(tmp_path, version=lambda: "2026.10")
    assert install_engine(there, io.BytesIO(), {}, print) == "2026.10"


def test_it_is_there_after_the_installation(tmp_path: Path):
    calls = tmp_path / "calls"
    python = fake_python(tmp_path, f"import json, sys; json.dump(sys.argv[1:], open({str(calls)!r}, 'w'))")
    there = place(tmp_path, python=python, version=lambda: "1.0" if calls.exists() else None)
    assert install_engine(there, io.BytesIO(), {}, lambda line: None) == "1.0"
    assert json.loads(calls.read_text("utf-8"))[-1] == "xllamacpp>=1"


def test_a_failure_is_told_in_pips_words_with_the_command(tmp_path: Path):
    python = fake_python(tmp_path, "print('ERROR: no matching distribution'); raise SystemExit(1)")
    with pytest.raises(ServerError, match="ERROR: no matching distribution") as caught:
        install_engine(place(tmp_path, python=python), io.BytesIO(), {}, lambda line: None)
    assert "-m pip install" in caught.value.hint


def test_the_requirement_is_that_of_the_extra():
    assert engine_requirement().startswith("xllamacpp")
