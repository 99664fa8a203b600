"""What bash really starts is compared with what the reader of command lines reports."""

from pathlib import Path
from shutil import which

import pytest

from agent.permissions.shell import analyse
from tests.permissions.bash_runner import BashRunner
from tests.permissions.command_lines import LineMaker

LINES = 520  # about 200 of them are plain enough to be known


@pytest.mark.skipif(which("bash") is None, reason="bash is what the lines are compared with")
@pytest.mark.timeout(120)
def test_bash_starts_nothing_that_is_not_reported(tmp_path: Path) -> None:
    runner, maker = BashRunner(tmp_path), LineMaker(seed=20260)
    known = ran = 0
    for line in (maker.line() for _ in range(LINES)):
        script = analyse(line)
        if script.is_unknown:
            continue
        known += 1
        reported = {(command.name or "").rsplit("/", 1)[-1] for command in script.commands}
        started = runner.started_by(line)
        ran += bool(started)
        assert started <= reported, line
    assert known > 180
    assert ran > 150


def test_the_comparison_would_see_a_missing_program(tmp_path: Path) -> None:
    assert BashRunner(tmp_path).started_by('p1 "$(p2)"; env p3') == {"p1", "p2", "p3"}
