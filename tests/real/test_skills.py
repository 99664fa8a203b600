"""Bundled skills with the model that comes with the program: what a person gets for a slash and a name."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]


@pytest.fixture
def variables(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """An environment with folders of its own, but the person's models; its server is stopped at the end."""
    own = {name: str(tmp_path / name) for name in ("AGENT_STATE_HOME", "AGENT_CONFIG_HOME")}
    environment = {**os.environ, **own, "PYTHONPATH": str(ROOT)}
    yield environment
    command = [sys.executable, "-m", "agent", "server", "stop"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Room bookings with one commit, and a staged change to them."""
    folder = tmp_path / "booking"
    shutil.copytree(ROOT / "examples" / "first-fix", folder, ignore=shutil.ignore_patterns("task.md"))
    person = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*person, "commit", "-q", "-m", "Add room bookings"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    source = folder / "booking.py"
    text = source.read_text("utf-8")
    assert text.count("booking.end)") == 1
    source.write_text(text.replace("booking.end)", "max(merged[-1].end, booking.end))"), "utf-8")
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    return folder


def state_of(folder: Path) -> str:
    """What git sees in it, staged changes included."""
    command = ["git", "status", "--porcelain=v2", "--branch"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def use_skill(name: str, folder: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "agent", "run", "-p", f"/{name}", "--profile", "embedded"]
    done = subprocess.run(
        [*command, "--output", "json"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=1100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_a_commit_message_is_about_the_staged_change_and_nothing_is_touched(
    repository: Path, variables: Mapping[str, str]
):
    before = state_of(repository)
    answer = use_skill("write-a-commit-message", repository, variables)["answer"].strip()
    first_line = answer.splitlines()[0]
    assert 10 < len(first_line) < 200
    assert any(word in answer.lower() for word in ("book", "taken", "merge", "end", "span"))
    assert state_of(repository) == before
