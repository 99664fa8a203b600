"""Fixtures around the fake child process: plans in a folder of their own, and nothing left running."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.server.fingerprint import fingerprint
from agent.server.identity import collect
from agent.server.launch import LaunchPlan
from agent.server.profile import Profile
from agent.server.record import list_records
from tests.patience import PATIENCE_SECONDS

FAKES = Path(__file__).parents[1] / "fakes"
FAKE_CHILD = FAKES / "fake_embedded_child.py"

MakePlan = Callable[..., LaunchPlan]


def make_profile(**changes: object) -> Profile:
    table = {"name": "trial", "context": 1024, "target": {"file": "model.gguf"}, **changes}
    return Profile.model_validate(table)


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[MakePlan]:
    """Makes a plan that runs the fake child with `switches`; what it started is killed at the end."""
    journal = tmp_path / "journal"

    def make(
        *switches: str,
        profile: Profile | None = None,
        start_seconds: float = PATIENCE_SECONDS,
        silent_seconds: float = PATIENCE_SECONDS,
    ) -> LaunchPlan:
        profile = profile or make_profile()
        return LaunchPlan(
            profile=profile,
            fingerprint=fingerprint(profile, tmp_path),
            model_path=tmp_path / "model.gguf",
            threads=1,
            runtime_folder=tmp_path / "run",
            log_folder=tmp_path / "logs",
            start_seconds=start_seconds,
            stop_seconds=0.5 if "--ignore-term" in switches else 5.0,
            busy_seconds=0.3,
            silent_seconds=silent_seconds,
            command=(sys.executable, str(FAKE_CHILD), "--journal", str(journal), *switches),
        )

    yield make
    for record in list_records(tmp_path / "run"):
        if record.is_running:
            os.kill(record.pid, signal.SIGKILL)
    for pid in starts(tmp_path):
        collect(pid)


def starts(tmp_path: Path) -> list[int]:
    """The process ids of all fake children that were started, in order."""
    journal = tmp_path / "journal"
    return [int(line) for line in journal.read_text("utf-8").split()] if journal.exists() else []
