"""What a real server has read, kept over a restart of it: the embedded engine and the llama-server binary."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.app.chat.interactive import open_session
from agent.config.load import load_settings
from agent.resources import data_folder
from agent.server import slot_states
from agent.server.download import obtain
from agent.server.loopback import request_json
from agent.server.profile_files import load_profile
from agent.server.record import Record, list_records
from agent.server.slot_reading import Read, Reading
from agent.server.slot_states import StoredState, facts_of, folder_of, life_of
from benchmarks.warm_start import evaluated as evaluated_since_start
from tests.app.talk import watched
from tests.e2e.conftest import ROOT, Place
from tests.real.llama_server import real_binary

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PROFILE = """\
engine = "{engine}"
context = 2048
threads = 1
cache_ram_mib = 64
[target]
file = "{file}"
[tools]
protocol = "constrained"
[model_card]
subagents = false
"""
PROMPT = " ".join(f"Rule {number}: keep part {number * 7} short." for number in range(20))


def home(folder: Path, engine: str, more: str = "") -> Place:
    """A home with a profile of the engine, for a small model."""
    shipped = load_profile("embedded-small", [ROOT / "server_profiles"]).model_files[0]
    models = os.environ.get("AGENT_MODELS_FOLDER")
    model = obtain(shipped, Path(models) if models else data_folder() / "models")
    made = Place(folder)
    made.variables |= {"AGENT_PROFILE": "warm", "AGENT_LIMITS_REPLY_TOKENS": "8"}
    made.profile("warm", more + PROFILE.format(engine=engine, file=model))
    return made


@pytest.fixture(params=["embedded", "llama-server"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A home for each engine; its server is stopped at the end."""
    made = home(tmp_path, request.param)
    if request.param == "llama-server":
        made.variables["AGENT_SERVER_BINARY"] = str(real_binary())
    yield made
    made.run("server", "stop", "--force")


@pytest.fixture
def slow_place(tmp_path: Path) -> Iterator[Place]:
    """A server that reads four tokens at a time: keeping what it has read pays on every machine."""
    made = home(tmp_path, "embedded", "batch = 4\nubatch = 4\n")
    yield made
    made.run("server", "stop", "--force")


def started(place: Place) -> Record:
    done = place.run("server", "start")
    assert done.code == 0, done.err
    [record] = list_records(place.state / "run")
    return record


def read(record: Record, prompt: str) -> Read:
    reading = Reading(record)
    assert reading.begin(prompt)
    done = reading.finish()
    assert done is not None
    return done


def kept(record: Record, folder: Path, done: Read) -> StoredState:
    facts = facts_of(record)
    assert facts is not None
    draft = StoredState(
        name="rules",
        kind="head",
        tokens=done.tokens,
        size=0,
        build=facts.build,
        template=facts.template,
        context=facts.context,
        life=life_of(record),
        seconds=1.0,
        digest="rules",
    )
    stored = slot_states.save(record, folder, done.slot, draft)
    assert stored is not None
    return stored


def evaluated(record: Record, prompt: str) -> int:
    body: dict[str, Any] = {"prompt": prompt, "n_predict": 1, "temperature": 0}
    status, answer = request_json(record.port, "POST", "/completion", record.api_key, body, 120)
    assert status == 200
    return answer["timings"]["prompt_n"]


def test_a_server_that_was_started_anew_has_read_what_was_kept(place: Place):
    record = started(place)
    folder = folder_of(place.state / "slots", record.fingerprint)
    stored = kept(record, folder, read(record, PROMPT))
    assert (folder / "rules.bin").stat().st_mode & 0o777 == 0o600
    assert place.run("server", "stop").code == 0
    again = started(place)
    assert slot_states.restore(again, folder, stored, 0)
    assert evaluated(again, f"{PROMPT} And now?") < 16


def test_a_state_that_was_cut_short_leaves_the_server_alive(place: Place):
    record = started(place)
    folder = folder_of(place.state / "slots", record.fingerprint)
    stored = kept(record, folder, read(record, PROMPT))
    path = folder / "rules.bin"
    path.write_bytes(path.read_bytes()[: stored.size // 2])
    assert not slot_states.restore(record, folder, stored, 0)
    assert not path.exists()
    assert evaluated(record, "Another prompt.") < 16


def test_a_second_run_evaluates_its_task_and_little_else(place: Place):
    (place.workspace / "AGENTS.md").write_text("Keep functions short.\n", "utf-8")
    words = ("--max-steps", "1", "--output", "json")
    place.run("run", "-p", "Say hello.", *words)
    # Another conversation takes the slot: the head has to be read again, or comes from the server's memory.
    [record] = list_records(place.state / "run")
    read(record, PROMPT)
    second = place.run("run", "-p", "Say goodbye.", *words).result
    assert second["stats"]["cached_tokens"] > 200
    assert second["stats"]["prompt_tokens"] <= 64


@pytest.mark.slow
async def test_runs_and_conversations_go_on_after_a_restart_almost_without_reading(
    slow_place: Place, monkeypatch: pytest.MonkeyPatch
):
    place, words = slow_place, ("--max-steps", "1", "--output", "json")
    (place.workspace / "AGENTS.md").write_text("Keep functions short.\n", "utf-8")
    place.run("run", "-p", "Say hello.", *words)

    place.run("server", "stop", "--force")
    before = evaluated_since_start(started(place))
    anew = place.run("run", "-p", "Say goodbye.", *words).result
    [record] = list_records(place.state / "run")
    assert anew["stats"]["cached_tokens"] > 200
    assert evaluated_since_start(record) - before <= 64

    place.run("server", "stop", "--force")
    on = place.run("run", "--continue", "-p", "Say it again.", *words).result
    assert on["stats"]["cached_tokens"] > anew["stats"]["cached_tokens"]
    # What was said of a cut reply comes with the task.
    assert on["stats"]["prompt_tokens"] < on["stats"]["cached_tokens"] / 3

    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    for _ in range(2):  # the state that the run has kept, then the one of the conversation itself
        place.run("server", "stop", "--force")
        started(place)
        loaded = load_settings(None, os.environ, {"limits.max_steps": 1})
        session = await open_session(place.workspace, loaded=loaded, resume=on["session_id"])
        async with watched(session) as talk:
            await talk.turn("And again.")
        step = talk.of("step_finished")[0].stats
        assert step.prompt_tokens < step.cached_tokens / 3
