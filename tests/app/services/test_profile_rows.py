"""What is told of profiles before one is chosen."""

from pathlib import Path

import pytest

from agent.app.services.profile_rows import ProfileRow, profile_rows

PROFILE = """
description = "{name}"
engine = "embedded"
context = 4096
[target]
file = "target.gguf"
bytes = 10
[draft]
file = "draft.gguf"
bytes = 5
[speculation]
kind = "draft"
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the models, beside a profile of the person's that needs two, and a broken one."""
    monkeypatch.setenv("AGENT_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text(PROFILE.format(name="Mine"), "utf-8")
    (folder / "spoilt.toml").write_text("engine = 3", "utf-8")
    models = tmp_path / "models"
    models.mkdir()
    return models


def row_of(name: str, models: Path) -> ProfileRow:
    return next(row for row in profile_rows(models) if row.name == name)


def test_a_profile_is_here_when_all_of_its_files_are(mine: Path):
    assert row_of("mine", mine) == ProfileRow(name="mine", description="Mine", bytes=15, presence="not here")
    (mine / "target.gguf").write_bytes(bytes(10))
    assert row_of("mine", mine).presence == "partly here"
    (mine / "draft.gguf").write_bytes(bytes(5))
    assert row_of("mine", mine).presence == "here"


def test_one_that_needs_no_file_or_cannot_be_read_is_told_apart(mine: Path):
    assert (row_of("vllm", mine).presence, row_of("vllm", mine).bytes) == ("elsewhere", 0)
    assert row_of("spoilt", mine).presence == "broken"
    assert "spoilt.toml" in row_of("spoilt", mine).description
