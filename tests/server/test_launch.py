"""Choices made before a start: time limit and threads."""

from dataclasses import replace
from pathlib import Path

from agent.server.launch import automatic_threads, container_limit
from tests.server.conftest import MakePlan


def test_time_limit_grows_with_the_size_of_the_files(plan: MakePlan, tmp_path: Path):
    automatic = replace(plan(), start_seconds=0.0)
    without_file = automatic.limit_seconds
    with (tmp_path / "model.gguf").open("wb") as file:
        file.truncate(1_000_000_000)
    assert automatic.limit_seconds >= without_file + 30
    assert replace(automatic, start_seconds=7.0).limit_seconds == 7.0


def test_automatic_threads_are_at_least_one():
    assert automatic_threads() >= 1


def test_quota_of_a_container_limits_the_threads(tmp_path: Path):
    quota = tmp_path / "cpu.max"
    quota.write_text("250000 100000\n", "ascii")
    assert container_limit(quota) == 2
    quota.write_text("50000 100000\n", "ascii")
    assert container_limit(quota) == 1
    quota.write_text("max 100000\n", "ascii")
    assert container_limit(quota) is None
    assert container_limit(tmp_path / "none") is None
