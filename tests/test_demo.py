"""`make demo` without a model: another `agent` on PATH does what the model would have done."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATCH = ROOT / "tests" / "cases" / "examples" / "first-fix.patch"
RESULT = {
    "steps": 3,
    "seconds": 41.2,
    "reason": "done",
    "stats": {
        "prompt_tokens": 700,
        "cached_tokens": 1500,
        "decode_tokens_per_second": 12.21,
        "prefill_tokens_per_second": 34.5,
        "acceptance_rate": 0.82,
        "accepted_tokens": 82,
        "drafted_tokens": 100,
        "cached_share": 0.6818,
    },
}


def run_demo(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    program = folder / "bin" / "agent"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return subprocess.run(
        ["sh", ROOT / "examples" / "demo.sh"],
        cwd=folder,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_shows_the_change_the_passing_test_and_the_figures(tmp_path: Path):
    result = tmp_path / "result.json"
    result.write_text(json.dumps(RESULT), encoding="utf-8")

    demo = run_demo(tmp_path, f"git apply '{PATCH}' && cat '{result}'")

    assert demo.returncode == 0, demo.stderr
    before, after = demo.stdout.split("FAILED (failures=1)")
    assert "AssertionError" in before
    assert "\nOK\n" in after
    assert "+            merged[-1] = Span(merged[-1].start, max(merged[-1].end, booking.end))" in demo.stdout
    assert "12.2 tok/s" in demo.stdout
    assert "82.0% 82 of 100 drafted tokens" in demo.stdout
    assert "68.2% 1500 of 2200 prompt tokens" in demo.stdout


@pytest.mark.parametrize("code", [1, 6])
def test_passes_on_how_the_run_ended(tmp_path: Path, code: int):
    demo = run_demo(tmp_path, f"exit {code}")
    assert demo.returncode == code
    assert f"exit code {code}" in demo.stdout


def test_works_on_a_copy(tmp_path: Path):
    run_demo(tmp_path, "rm booking.py")
    assert (ROOT / "examples" / "first-fix" / "booking.py").exists()
    assert not list(tmp_path.glob(".demo/*/booking.py"))


def test_has_the_progress_of_the_run_in_a_pipe(tmp_path: Path):
    demo = run_demo(tmp_path, "echo 'server: loading' >&2")
    assert "server: loading" in demo.stdout


def test_ends_with_what_to_do_next(tmp_path: Path):
    demo = run_demo(tmp_path, "exit 0")

    server, undo, own = demo.stdout.splitlines()[-3:]
    assert "`.venv/bin/agent server stop`" in server
    assert f"{next(tmp_path.glob('.demo/*')).name} && {tmp_path / 'bin' / 'agent'} undo`" in undo
    assert f"`{tmp_path / 'bin' / 'agent'}` in your repository" in own
