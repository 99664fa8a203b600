"""Which of several files was changed last, whatever the clock did."""

import os
from pathlib import Path

import pytest

from agent.core.file_times import last_change

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("changed", "counts_as"),
    [(NOW - 100, NOW - 100), (NOW, NOW), (NOW + 5, NOW + 5), (NOW + 86_400, 0.0)],
)
def test_a_time_that_is_still_to_come_is_the_oldest_of_all(tmp_path: Path, changed: float, counts_as: float):
    file = tmp_path / "a"
    file.touch()
    os.utime(file, (changed, changed))
    assert last_change(file, NOW) == counts_as


def test_a_file_that_is_gone_is_the_oldest_of_all(tmp_path: Path):
    assert last_change(tmp_path / "gone", NOW) == 0.0
