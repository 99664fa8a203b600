"""The main job with the real model: a bug is found and fixed, from the task file alone."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]


def test_the_embedded_model_fixes_the_first_example(tmp_path: Path, variables: Mapping[str, str]) -> None:
    workspace = tmp_path / "first-fix"
    shutil.copytree(ROOT / "examples" / "first-fix", workspace)
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    command = [sys.executable, "-m", "agent", "run", "task.md", "--profile", "embedded", "--output", "json"]
    done = subprocess.run(
        command, cwd=workspace, env=variables, capture_output=True, text=True, check=False, timeout=1100
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    assert result["check_passed"] is True
    assert result["files_changed"] == ["booking.py"]
    assert result["stats"]["drafted_tokens"] > 0
    assert 0 < result["stats"]["acceptance_rate"] <= 1
    assert result["stats"]["cached_tokens"] > 0
    check = [sys.executable, "-m", "unittest", "-q"]
    assert subprocess.run(check, cwd=workspace, check=False, capture_output=True).returncode == 0
