"""A bundled skill with a real model: what a person gets for a slash and a name.

Whether the words are good is up to the model, so the smallest will do. That a turn with the skill comes to
its end, and that nothing was changed for it, is not.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
ENDINGS_OF_A_MODEL = (0, 1, 3, 4)
"""Done, gave up, out of steps, refused; a fault of the program or of the server is another one."""


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
    command = [sys.executable, "-m", "agent", "run", "-p", f"/{name}", "--profile", "embedded-small"]
    done = subprocess.run(
        [*command, "--max-steps", "2", "--output", "json"],
        cwd=folder,
        env={**variables, "AGENT_PERMISSIONS_MODE": "plan", "AGENT_LIMITS_REPLY_TOKENS": "96"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in ENDINGS_OF_A_MODEL, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_a_commit_message_is_asked_for_and_nothing_is_touched(repository: Path, variables: Mapping[str, str]):
    before = state_of(repository)
    result = use_skill("write-a-commit-message", repository, variables)
    assert result["stats"]["decoded_tokens"] > 0
    assert result["answer"].strip() or result["exit_code"] != 0
    assert result["files_changed"] == []
    assert state_of(repository) == before
