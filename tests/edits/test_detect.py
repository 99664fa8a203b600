"""Which formatters a project asks for by its own files."""

from pathlib import Path

import pytest

from agent.edits.detect import own_formatters, program_folders


@pytest.mark.parametrize(
    ("file", "content", "name"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 99\n", "ruff"),
        ("pyproject.toml", "[tool.ruff.format]\n", "ruff"),
        ("ruff.toml", "", "ruff"),
        (".prettierrc", "{}", "prettier"),
        ("prettier.config.mjs", "", "prettier"),
        ("package.json", '{"prettier": {"semi": false}}', "prettier"),
        ("go.mod", "module x\n", "gofmt"),
        ("rustfmt.toml", "", "rustfmt"),
    ],
)
def test_configuration_of_a_formatter_is_found(tmp_path: Path, file: str, content: str, name: str):
    (tmp_path / file).write_text(content)
    assert [(one.name, one.file) for one in own_formatters(tmp_path)] == [(name, file)]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("pyproject.toml", "[tool.black]\n"),
        ("pyproject.toml", "[tool.ruff\n"),
        ("pyproject.toml", "tool = 3\n"),
        ("package.json", '{"dependencies": {"prettier": "3"}}'),
        ("package.json", "[" * 100_000),
        ("package.json", "[]"),
        ("Cargo.toml", "[package]\n"),
    ],
)
def test_other_files_and_broken_ones_ask_for_nothing(tmp_path: Path, file: str, content: str):
    (tmp_path / file).write_text(content)
    assert own_formatters(tmp_path) == ()


def test_folder_with_the_name_of_a_configuration_is_none(tmp_path: Path):
    (tmp_path / "ruff.toml").mkdir()
    (tmp_path / "pyproject.toml").mkdir()
    assert own_formatters(tmp_path) == ()


def test_folders_of_programs_are_those_that_are_there(tmp_path: Path):
    (tmp_path / "node_modules/.bin").mkdir(parents=True)
    assert program_folders(tmp_path) == [str(tmp_path / "node_modules/.bin")]
