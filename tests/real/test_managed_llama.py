"""`agent server start` with the installed llama-server and a quantised model (SmolLM2, 98 MB)."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.loopback import request_json
from agent.server.profile_files import load_profile
from agent.server.record import Record, list_records
from tests.e2e.conftest import ROOT, Place, is_running
from tests.real.llama_server import real_binary

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PROFILE = """\
engine = "llama-server"
context = 1024
threads = 1
cache_ram_mib = 64
[target]
file = "{file}"
"""
_ANSWER_SECONDS = 60.0


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A home with a profile `small` of the installed binary; its server is stopped at the end."""
    shipped = load_profile("embedded-small", [ROOT / "server_profiles"]).model_files[0]
    folder = os.environ.get("AGENT_MODELS_FOLDER")
    model = obtain(shipped, Path(folder) if folder else data_folder() / "models")
    made = Place(tmp_path)
    made.variables |= {"AGENT_PROFILE": "small", "AGENT_SERVER_BINARY": str(real_binary())}
    made.profile("small", PROFILE.format(file=model))
    yield made
    made.run("server", "stop", "--force")


def the_server(place: Place) -> Record:
    [record] = list_records(place.state / "run")
    return record


def ask(record: Record, key: str) -> tuple[int, str]:
    """Status and reply, empty without one. What it says is up to so small a model."""
    body = {
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "max_tokens": 24,
        "temperature": 0,
    }
    status, answer = request_json(record.port, "POST", "/v1/chat/completions", key, body, _ANSWER_SECONDS)
    return status, answer["choices"][0]["message"]["content"] if status == 200 else ""


def test_a_quantised_model_is_started_answers_and_is_stopped(place: Place):
    started = place.run("server", "start")
    assert started.code == 0, started.err
    assert "small: ready at http://127.0.0.1:" in started.err
    record = the_server(place)
    status, reply = ask(record, record.api_key)
    assert status == 200
    assert reply.strip()
    assert place.run("server", "stop").code == 0
    assert not is_running(record.pid)
    assert list_records(place.state / "run") == []


def test_nobody_without_its_key_gets_an_answer(place: Place):
    assert place.run("server", "start").code == 0
    assert ask(the_server(place), "another")[0] == 401


def test_its_status_says_what_runs(place: Place):
    assert place.run("server", "start").code == 0
    [status] = json.loads(place.run("server", "status", "--json").out)
    assert (status["state"], status["engine"], status["context_tokens"]) == ("ready", "llama-server", 1024)
    assert status["binary"] == str(real_binary())
    assert status["findings"] == []
