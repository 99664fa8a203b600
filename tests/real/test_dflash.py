"""DFlash for real: the pair that comes with the program, from `agent run` to every figure about it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.profile_files import load_profile
from agent.server.record import list_records
from tests.e2e.conftest import ROOT, Place
from tests.real.llama_server import real_binary

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SHORT = """\
extends = "embedded-dflash"
engine = "{engine}"
context = 2048
cache_ram_mib = 0
[sampling]
temperature = 0.0
[model_card]
max_reply_tokens = 40
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A home whose profile `short` has the shipped pair and short replies; its server is stopped."""
    folder = Path(os.environ.get("AGENT_MODELS_FOLDER") or data_folder() / "models")
    for file in load_profile("embedded-dflash", [ROOT / "server_profiles"]).model_files:
        obtain(file, folder)
    place = Place(tmp_path)
    place.variables |= {
        "AGENT_PROFILE": "short",
        "AGENT_SERVER_THREADS": "1",
        "AGENT_SERVER_BINARY": str(real_binary()),
        "AGENT_MODELS_FOLDER": str(folder),
    }
    yield place
    place.run("server", "stop", "--force")


@pytest.mark.parametrize("engine", ["embedded", "llama-server"])
def test_run_drafts_and_tells_what_was_accepted(engine: str, place: Place):
    place.profile("short", SHORT.format(engine=engine))
    task = "Write a Python function that adds two numbers."
    done = place.run("run", "-p", task, "--max-steps", "1", "--output", "json")

    # What so small a model does with one step is up to it; a server that failed would be a 5.
    assert done.code in (0, 1, 3, 4), done.err
    stats = json.loads(done.out)["stats"]
    assert stats["drafted_tokens"] >= 10
    # A drafter that is not understood gets next to nothing accepted, whatever the model writes.
    assert 0.03 < stats["acceptance_rate"] <= 1
    assert stats["tokens_per_pass"] > 1
    assert f"({stats['accepted_tokens']}/{stats['drafted_tokens']} drafted tokens)" in done.err
    assert " tokens a pass" in done.err
    (recorded,) = (event for event in place.sessions()[-1] if event["type"] == "turn_finished")
    assert recorded["stats"]["accepted"] == stats["accepted_tokens"]
    (record,) = list_records(place.state / "run")
    assert record.speculates
