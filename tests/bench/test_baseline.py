"""What each server could do when it was measured last."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.bench.baseline import Baseline, baseline_for, key_of, store_baseline
from agent.core.errors import AgentError
from agent.server.record import Endpoint

ONE = Baseline(
    profile="embedded",
    suite="coding",
    decode_rate=10.5,
    prompt_rate=100.0,
    speculation="ngram-mod",
    accept_rate=0.5,
    machine="a fast one",
    samples=9,
    measured_at="2026-01-02T03:04:05+00:00",
)


def test_what_was_stored_is_found_again(tmp_path: Path):
    file = tmp_path / "state" / "baselines.json"
    store_baseline(file, "abc", ONE)
    store_baseline(file, "def", replace(ONE, decode_rate=3.0))
    assert baseline_for("abc", file) == ONE
    assert baseline_for("xyz", file) is None


def test_newer_result_replaces_the_former_of_the_same_suite_only(tmp_path: Path):
    file = tmp_path / "baselines.json"
    store_baseline(file, "abc", replace(ONE, suite="quality"))
    store_baseline(file, "abc", ONE)
    store_baseline(file, "abc", replace(ONE, decode_rate=12.0))
    found = [baseline_for("abc", file, suite) for suite in ("coding", "quality")]
    assert [one.decode_rate for one in found if one] == [12.0, 10.5]


def test_suite_that_is_most_like_a_session_is_preferred(tmp_path: Path):
    file = tmp_path / "baselines.json"
    for suite in ("agent", "quality", "coding"):
        store_baseline(file, "abc", replace(ONE, suite=suite))
    found = baseline_for("abc", file)
    assert found is not None
    assert found.suite == "agent"


@pytest.mark.parametrize("content", ["", "[]", "{", '{"abc": 1}', '{"abc": {"coding": {"profile": "x"}}}'])
def test_damaged_file_remembers_nothing_and_can_be_written_again(content: str, tmp_path: Path):
    file = tmp_path / "baselines.json"
    file.write_text(content, "utf-8")
    assert baseline_for("abc", file) is None
    store_baseline(file, "abc", ONE)
    assert baseline_for("abc", file) == ONE


def test_file_that_cannot_be_written_is_told(tmp_path: Path):
    file = tmp_path / "baselines.json"
    file.mkdir()
    with pytest.raises(AgentError, match="could not be remembered"):
        store_baseline(file, "abc", ONE)
    assert [path.name for path in tmp_path.iterdir()] == ["baselines.json"]


def test_server_that_was_not_started_here_is_remembered_by_its_address():
    place = Endpoint(base_url="http://box:80", api_key="", profile="x", context_tokens=0)
    assert key_of(place) == "url:http://box:80"
    assert key_of(replace(place, fingerprint="abc")) == "abc"
