"""A limit of tool calls with a real model (SmolLM2 135M): whatever it says, it makes no more of them."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def test_a_real_model_makes_no_more_tool_calls_than_it_may(tmp_path: Path, variables: Mapping[str, str]):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n", "utf-8")
    task = ("run", "-p", "Read a.py, then write b.py with y = 2.", "--profile", "embedded-small")
    done = subprocess.run(
        [sys.executable, "-m", "agent", *task, "--max-tool-calls", "1", "--output", "jsonl"],
        cwd=folder,
        env={**variables, "AGENT_LIMITS_MAX_STEPS": "3", "AGENT_LIMITS_REPLY_TOKENS": "64"},
        capture_output=True,
        text=True,
        check=False,
    )
    events: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    calls = [event["tool"] for event in events if event["type"] == "tool_started"]
    assert len(calls) <= 1, calls
    assert done.returncode in (0, 1, 3, 4), done.stderr[-2000:]
    assert not calls or events[-1]["reason"] in ("tool_call_limit", "done"), events[-1]
