"""Programs that get models and engines are often started in a repository of somebody else's."""

import io
import os
import sys
from pathlib import Path

import pytest

from agent.core.errors import ServerError
from agent.server.engine_extra import Environment, install_engine
from agent.server.hardware import run_program
from agent.server.program import run_logged
from agent.server.sources import find_pip


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder has modules in it that leave `ran` behind."""
    folder = tmp_path / "repository"
    (folder / "pip").mkdir(parents=True)
    for name in ("pip/__init__.py", "pip/__main__.py", "zipfile.py", "json.py"):
        (folder / name).write_text("open('ran', 'w').close()\n", "utf-8")
    monkeypatch.chdir(folder)
    return folder / "ran"


def test_pip_is_not_taken_from_the_present_folder(trap: Path):
    pip = find_pip()
    assert pip is not None
    assert (run_program([*pip, "--version"], 60) or "").startswith("pip ")
    assert not trap.exists()


def test_an_engine_is_not_installed_by_a_pip_of_the_present_folder(trap: Path, tmp_path: Path):
    place = Environment(
        python=Path(sys.executable),
        prefix=tmp_path,
        managed=False,
        has_pip=True,
        uv=None,
        version=lambda: None,
        requirement=lambda: "--no-such-option",
    )
    with pytest.raises(ServerError):
        install_engine(place, io.BytesIO(), os.environ, lambda line: None)
    assert not trap.exists()


def test_a_program_that_works_for_minutes_can_be_run_in_another_folder(tmp_path: Path):
    said: list[str] = []
    run_logged(["/bin/pwd"], log=io.BytesIO(), environment={}, on_line=said.append, folder=tmp_path)
    assert said == [str(tmp_path)]
