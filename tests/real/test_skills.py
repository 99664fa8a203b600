"""Bundled skills with the model that comes with the program: what a person gets for a slash and a name."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]


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
    assert 10 < len(answer) < 1000
    assert any(word in answer.lower() for word in ("book", "taken", "merge", "end", "span"))
    assert state_of(repository) == before
