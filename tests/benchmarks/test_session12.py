"""What can be counted in the scripted session of twelve steps; times are left to the benchmark."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import report12, scenario12
from benchmarks.session12 import PROTOCOLS, make_bench, names_looked_up, play

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=PROTOCOLS)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One session with the real command; it is an error when the files come out wrong."""
    return report12.session_record(*play(make_bench(tmp_path_factory.mktemp("session12")), request.param))


@pytest.mark.timeout(120)
def test_model_is_asked_once_for_each_step(session: dict[str, Any]):
    assert session["chat_requests"] == scenario12.STEPS


def test_server_is_asked_nothing_else_but_whether_it_is_there_and_what_it_is(session: dict[str, Any]):
    assert set(session["other_requests"]) <= {"/health", "/props"}
    assert len(session["other_requests"]) == len(set(session["other_requests"]))


def test_each_request_only_adds_to_the_one_before(session: dict[str, Any]):
    assert session["least_prefix_kept"] == 1.0
    assert session["prefill_ratio"] == 1.0


def test_first_request_without_its_task_is_short(session: dict[str, Any]):
    assert 100 < session["before_the_task_tokens"] <= 1200


def test_largest_process_is_small(session: dict[str, Any]):
    assert 10 < session["largest_mib"] <= 100


@pytest.mark.timeout(120)
def test_no_name_of_a_host_is_looked_up(tmp_path: Path):
    assert names_looked_up(make_bench(tmp_path)) == {protocol: [] for protocol in PROTOCOLS}
