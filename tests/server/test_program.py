"""Programs that work for minutes: their lines, their log, their end, and an estimate of what is left."""

import io
import os
import sys
from pathlib import Path

import pytest

from agent.server.build import progress_in
from agent.server.program import Estimate, run_logged
from agent.server.sources import CancelledError


def run_python(script: str, **changes) -> tuple[int, list[str], bytes]:
    lines: list[str] = []
    log = io.BytesIO()
    command = [sys.executable, "-c", script]
    status = run_logged(command, log=log, environment=dict(os.environ), on_line=lines.append, **changes)
    return status, lines, log.getvalue()


def test_lines_of_both_streams_arrive_and_are_logged():
    status, lines, log = run_python("import sys; print('a\\rb'); print('c', file=sys.stderr); sys.exit(3)")
    assert status == 3
    assert sorted(lines) == ["a", "b", "c"]
    assert b"a\rb\n" in log


def test_a_last_line_without_an_end_arrives_too():
    assert run_python("print('rest', end='')")[1] == ["rest"]


def test_something_left_behind_does_not_hold_up_the_end(tmp_path: Path):
    note = tmp_path / "child"
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))"
    )
    try:
        assert run_python(script)[0] == 0
    finally:
        os.kill(int(note.read_text("ascii")), 9)


def test_a_cancelled_program_is_ended(tmp_path: Path):
    note = tmp_path / "pid"
    script = f"import os, signal; open({str(note)!r}, 'w').write(str(os.getpid())); signal.pause()"
    with pytest.raises(CancelledError):
        run_python(script, cancelled=lambda: note.exists() and note.stat().st_size > 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text("ascii")), 0)


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        ("[12/208] Building CXX object a.cpp.o", (12, 208)),
        ("[  7%] Building CXX object a.cpp.o", (7, 100)),
        ("[100%] Built target llama-server", (100, 100)),
        ("warning: [12/208] in a text", None),
        ("", None),
    ],
)
def test_progress_is_read_from_ninja_and_make(line: str, progress: tuple[int, int] | None):
    assert progress_in(line) == progress


def test_the_estimate_counts_from_the_first_report():
    times = iter([100.0, 110.0, 130.0])
    estimate = Estimate(lambda: next(times))
    assert estimate.seconds_left(50, 100) is None
    assert estimate.seconds_left(55, 100) == pytest.approx(90.0)
    assert estimate.seconds_left(80, 100) == pytest.approx(20.0)
