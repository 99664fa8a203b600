"""Runs of the command itself with a real model."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def variables(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """An environment with folders of its own, but the person's models; its server is stopped at the end.

    One thread, because other tests may run on the other cores.
    """
    own = {name: str(tmp_path / name) for name in ("AGENT_STATE_HOME", "AGENT_CONFIG_HOME")}
    environment = {**os.environ, **own, "AGENT_SERVER_THREADS": "1", "PYTHONPATH": str(ROOT)}
    yield environment
    command = [sys.executable, "-m", "agent", "server", "stop", "--force"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True)
