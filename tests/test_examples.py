"""The examples are honest: each check fails on what is given, and the task can be done."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/task.md"))
SOLUTIONS = ROOT / "tests" / "cases" / "examples"


@pytest.fixture(params=EXAMPLES, ids=lambda folder: folder.name)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of one example, in a folder with the example's name."""
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


def run_check(example: Path) -> subprocess.CompletedProcess[str]:
    front_matter = (example / "task.md").read_text(encoding="utf-8").split("---\n")[1]
    return subprocess.run(
        yaml.safe_load(front_matter)["check"],
        shell=True,
        cwd=example,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_there_are_five_examples_with_a_solution_each():
    assert len(EXAMPLES) == 5
    assert sorted(path.stem for path in SOLUTIONS.glob("*.patch")) == [path.name for path in EXAMPLES]


def test_check_fails_before_anything_is_done(example: Path):
    assert run_check(example).returncode != 0


def test_reference_solution_passes_the_check(example: Path):
    patch = SOLUTIONS / f"{example.name}.patch"
    subprocess.run(["git", "init", "-q"], cwd=example, check=True)
    subprocess.run(["git", "apply", patch], cwd=example, check=True)

    result = run_check(example)

    assert result.returncode == 0, result.stdout + result.stderr


def test_files_are_short_because_each_token_of_a_prompt_costs_time(example: Path):
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in example.glob("*.*")}
    assert {name: length for name, length in lengths.items() if length >= 80} == {}
