"""What bash really starts is compared with what the reader of command lines reports."""

import random
from collections.abc import Iterable
from pathlib import Path
from shutil import which

import pytest

from agent.permissions.shell import analyse
from tests.permissions.bash_runner import BashRunner
from tests.permissions.command_lines import LineMaker
from tests.permissions.wrapper_lines import wrapper_line

LINES = 520  # about 200 of them are plain enough to be known


pytestmark = [
    pytest.mark.skipif(which("bash") is None, reason="bash is what the lines are compared with"),
    pytest.mark.timeout(120),
]


def compare(lines: Iterable[str], runner: BashRunner) -> tuple[int, int]:
    """Holds that bash starts nothing unreported. Returns how many lines were known, and started something."""
    known = ran = 0
    for line in lines:
        script = analyse(line)
        if script.is_unknown:
            continue
        known += 1
        reported = {(command.name or "").rsplit("/", 1)[-1] for command in script.commands}
        started = runner.started_by(line)
        ran += bool(started)
        assert started <= reported, line
    return known, ran


def test_bash_starts_nothing_that_is_not_reported(tmp_path: Path) -> None:
    maker = LineMaker(seed=20260)
    known, ran = compare((maker.line() for _ in range(LINES)), BashRunner(tmp_path))
    assert known > 180
    assert ran > 150


def test_wrappers_start_nothing_that_is_not_reported_whatever_their_options(tmp_path: Path) -> None:
    source = random.Random(20261)
    known, ran = compare((wrapper_line(source) for _ in range(400)), BashRunner(tmp_path))
    assert known > 150
    assert ran > 60


def test_the_comparison_would_see_a_missing_program(tmp_path: Path) -> None:
    assert BashRunner(tmp_path).started_by('p1 "$(p2)"; env p3') == {"p1", "p2", "p3"}
