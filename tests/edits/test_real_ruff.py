"""The preset for Python with the ruff that development needs anyway."""

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from agent.app.turns.edited import write_back
from agent.edits.runner import EditRunner
from agent.edits.spec import EditStep, formatter_only, steps_from


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "ruff.toml").write_text('lint.select = ["F"]\n')
    return tmp_path.resolve()


def runner(place: Path, notices: list[str], *own: EditStep) -> EditRunner:
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    return EditRunner(
        steps=own or steps_from(["ruff"]),
        workspace=place,
        environment=lambda: {**os.environ, "PATH": path},
        notify=notices.append,
        write=partial(write_back, place),
    )


async def test_formats_and_tells_what_is_new(place: Path):
    notices: list[str] = []
    edits = runner(place, notices)
    path = place / "my file.py"
    path.write_text("import os\n")
    await edits.before(path)
    path.write_text("import os\nx = { 'a':y }\n")
    assert (await edits.format(path, is_new=False)).by == ("ruff format",)
    assert path.read_text() == 'import os\n\nx = {"a": y}\n'
    (checked,) = await edits.check(path, range(2, 4))
    assert checked.label == "ruff check"
    assert [found.text for found in checked.findings] == ["my file.py:3:11: F821 Undefined name `y`"]
    assert notices == []


async def test_mistake_of_syntax_comes_from_the_check_alone(place: Path):
    notices: list[str] = []
    edits = runner(place, notices)
    path = place / "a.py"
    await edits.before(path)
    path.write_text("def f(:\n")
    assert (await edits.format(path, is_new=True)).findings == ()
    (checked,) = await edits.check(path, range(1, 2))
    assert "invalid-syntax" in checked.findings[0].text
    assert notices == []


async def test_formatter_of_a_project_tells_a_mistake_of_syntax_itself(place: Path):
    notices: list[str] = []
    edits = runner(place, notices, formatter_only("ruff"))
    path = place / "a.py"
    await edits.before(path)
    path.write_text("def f(:\n")
    assert "a.py:1:7" in (await edits.format(path, is_new=True)).findings[0].text
    assert notices == []


async def test_file_that_the_project_excludes_is_left_alone(place: Path):
    (place / "ruff.toml").write_text('extend-exclude = ["made.py"]\n')
    edits = runner(place, [])
    path = place / "made.py"
    path.write_text("x = {  }\n")
    assert (await edits.format(path, is_new=False)).by == ()


async def test_messy_file_is_left_alone_by_the_formatter_of_a_project(place: Path):
    edits = runner(place, [], formatter_only("ruff"))
    messy, tidy = place / "messy.py", place / "tidy.py"
    messy.write_text("x = {  }\n")
    tidy.write_text("x = {}\n")
    for path in (messy, tidy):
        await edits.before(path)
        path.write_text(path.read_text() + "y = [ 1 ]\n")
        await edits.format(path, is_new=False)
    assert messy.read_text() == "x = {  }\ny = [ 1 ]\n"
    assert tidy.read_text() == "x = {}\ny = [1]\n"
