"""A real server that is killed, or hangs, while its model is at work."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.server.record import list_records
from tests.real.test_skills import ENDINGS_OF_A_MODEL

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGKILL, "the server of profile 'embedded-small' is gone"),
        # It takes connections and answers none, as one that hangs in its driver or in swapped memory.
        (signal.SIGSTOP, "went silent and does not answer /health; it is started again"),
    ],
)
def test_a_server_that_ends_or_hangs_at_its_work_is_started_again_and_the_turn_goes_on(
    tmp_path: Path, variables: Mapping[str, str], number: signal.Signals, words: str
):
    folder = tmp_path / "work"
    folder.mkdir()
    command = ["run", "-p", "Say how a hash table works.", "--profile", "embedded-small", "--max-steps", "2"]
    running = subprocess.Popen(
        [sys.executable, "-m", "agent", *command, "--output", "jsonl"],
        cwd=folder,
        env={**variables, "AGENT_PERMISSIONS_MODE": "plan", "AGENT_LIMITS_REPLY_TOKENS": "48"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    while json.loads(running.stdout.readline())["type"] != "step_started":
        pass  # then the request is on its way
    servers = Path(variables["AGENT_STATE_HOME"]) / "run"
    [first] = list_records(servers)
    os.kill(first.pid, number)
    output, problems = running.communicate(timeout=500)
    events: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
    assert running.returncode in ENDINGS_OF_A_MODEL, problems
    told = [event["text"] for event in events if event["type"] == "notice"]
    assert any(words in text for text in told), told
    [second] = list_records(servers)
    assert second.pid != first.pid
    assert events[-1]["stats"]["decoded_tokens"] > 0
