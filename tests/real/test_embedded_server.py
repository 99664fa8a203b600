"""The embedded engine with a real, small model. The file is fetched if it is not there (98 MB)."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.fingerprint import fingerprint
from agent.server.identity import process_identity
from agent.server.launch import LaunchPlan
from agent.server.loopback import request_json, status_of
from agent.server.probe import busy_slots
from agent.server.process import ensure_running, stop_server
from agent.server.profile import Profile
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint, find_running, list_records
from tests.real.rig import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
NGRAM_MOD = {"kind": "ngram-mod", "n_match": 8, "n_min": 2, "n_max": 16}
REPEATING = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho. " * 6


@pytest.fixture(scope="module")
def model_path() -> Path:
    folder = os.environ.get("AGENT_MODELS_FOLDER")
    profile = load_profile("embedded-small", [ROOT / "server_profiles"])
    return obtain(profile.model_files[0], Path(folder) if folder else data_folder() / "models")


def make_plan(folder: Path, model_path: Path, **changes: Any) -> LaunchPlan:
    shipped = load_profile("embedded-small", [ROOT / "server_profiles"])
    profile = Profile.model_validate({**shipped.model_dump(exclude_unset=True), "context": 2048, **changes})
    return LaunchPlan(
        profile=profile,
        fingerprint=fingerprint(profile, folder),
        model_path=model_path,
        threads=1,
        runtime_folder=folder / "run",
        log_folder=folder / "logs",
    )


def stop_all(folder: Path) -> None:
    for record in list_records(folder / "run"):
        asyncio.run(stop_server(record, folder / "run"))


@pytest.fixture(scope="module")
def drafting(
    tmp_path_factory: pytest.TempPathFactory, model_path: Path
) -> Iterator[tuple[LaunchPlan, Endpoint]]:
    """One server that drafts from the context, for all tests that only talk to it."""
    folder = tmp_path_factory.mktemp("drafting")
    plan = make_plan(folder, model_path, speculation=NGRAM_MOD)
    yield plan, asyncio.run(ensure_running(plan))
    stop_all(folder)


def ask(endpoint: Endpoint, path: str, body: Any = None, key: str | None = None) -> tuple[int, Any]:
    port = int(endpoint.base_url.rpartition(":")[2])
    method = "GET" if body is None else "POST"
    return request_json(port, method, path, endpoint.api_key if key is None else key, body, timeout=120)


def test_answers_a_chat_request(drafting: tuple[LaunchPlan, Endpoint]):
    body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "temperature": 0}
    status, answer = ask(drafting[1], "/v1/chat/completions", body)
    assert status == 200
    assert answer["choices"][0]["message"]["content"]
    assert answer["timings"]["predicted_n"] <= 8


def test_context_is_that_of_the_profile(drafting: tuple[LaunchPlan, Endpoint]):
    plan, endpoint = drafting
    assert (endpoint.context_tokens, endpoint.slots) == (plan.profile.context, 1)


def test_is_reused_by_the_next_start(drafting: tuple[LaunchPlan, Endpoint]):
    plan, endpoint = drafting
    assert asyncio.run(ensure_running(plan)) == endpoint


def test_drafts_from_the_context_when_asked(drafting: tuple[LaunchPlan, Endpoint]):
    body = {"prompt": REPEATING, "n_predict": 96, "temperature": 0, "ignore_eos": True}
    status, answer = ask(drafting[1], "/completion", body)
    assert status == 200
    assert answer["timings"]["draft_n"] > 0


def test_wants_its_key(drafting: tuple[LaunchPlan, Endpoint]):
    assert ask(drafting[1], "/props", key="guess")[0] == 401


def test_lets_no_web_page_in(drafting: tuple[LaunchPlan, Endpoint]):
    import http.client

    endpoint = drafting[1]
    connection = http.client.HTTPConnection(endpoint.base_url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/health", headers={"Origin": "http://page.example"})
    response = connection.getresponse()
    response.read()
    connection.close()
    assert not response.getheader("Access-Control-Allow-Origin")


def test_tells_its_figures_and_how_busy_it_is(drafting: tuple[LaunchPlan, Endpoint]):
    plan, endpoint = drafting
    assert ask(endpoint, "/metrics")[0] == 200
    (record,) = list_records(plan.runtime_folder)
    until(lambda: busy_slots(record) == 0)


STARTER = """
import asyncio, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from agent.server.process import ensure_running
from tests.real.test_embedded_server import make_plan
endpoint = asyncio.run(ensure_running(make_plan(Path(sys.argv[2]), Path(sys.argv[3]))))
print(endpoint.pid, flush=True)
signal.pause()
"""


def test_is_adopted_after_its_starter_was_killed_and_then_stopped(tmp_path: Path, model_path: Path):
    plan = make_plan(tmp_path, model_path)
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(ROOT), str(tmp_path), str(model_path)], stdout=subprocess.PIPE
    )
    try:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        starter.kill()
        starter.communicate()
        endpoint = asyncio.run(ensure_running(plan))
        assert endpoint.pid == pid
        assert find_running(plan.fingerprint, plan.runtime_folder) == endpoint
        (record,) = list_records(plan.runtime_folder)
        assert asyncio.run(stop_server(record, plan.runtime_folder)) == "stopped"
        assert process_identity(pid) is None
        assert status_of(record.port, "/health") is None
    finally:
        starter.kill()
        starter.wait()
        stop_all(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"garbage, no model", "damaged"), (None, "a model file is missing")],
    ids=["garbage", "missing"],
)
def test_file_that_is_no_model_is_told_in_one_line(content: bytes | None, words: str, tmp_path: Path):
    from agent.core.errors import ModelFileError

    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelFileError, match=words) as caught:
        asyncio.run(ensure_running(make_plan(tmp_path, path)))
    assert "\n" not in caught.value.message


def test_half_a_model_file_is_told(tmp_path: Path, model_path: Path):
    from agent.core.errors import ModelFileError

    path = tmp_path / "model.gguf"
    with model_path.open("rb") as whole:
        path.write_bytes(whole.read(20_000_000))
    with pytest.raises(ModelFileError, match="damaged or only half there"):
        asyncio.run(ensure_running(make_plan(tmp_path, path)))
