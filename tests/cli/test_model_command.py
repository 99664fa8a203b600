"""`agent model list`, as a person meets it."""

import argparse
from pathlib import Path

import pytest

from agent.cli import model


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    for kind in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.delenv("AGENT_MODELS_FOLDER", raising=False)  # of whoever runs the tests
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    model.add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["model", "list"])
    assert arguments.func(arguments) == 0
    return capsys.readouterr().out.splitlines()


def test_list_has_a_header_and_columns_below_it(listed: list[str]) -> None:
    state, size = listed[0].index("STATE"), listed[0].index("SIZE")
    assert listed[0].startswith("FILE ")
    assert {line[state - 2 : state] for line in listed[1:]} == {"  "}
    # Ready is the drafter that comes with the program.
    assert {line[state:].split()[0] for line in listed[1:]} == {"missing", "ready"}
    assert all(line[size - 1] == " " != line[size] for line in listed[1:])


def test_list_has_the_size_that_a_profile_names_before_the_file_is_there(listed: list[str]) -> None:
    line = next(line for line in listed if line.startswith("qwen2.5-coder-1.5b"))
    assert line.split()[1:4] == ["missing", "1.1", "GB"]
