"""The first server of a machine is measured before anybody uses it, and its batch fitted."""

import json
from dataclasses import replace
from pathlib import Path

from agent.server import record as records
from agent.server.launch import LaunchPlan
from agent.server.process import ensure_running
from agent.server.reading_speed import known_rate, reader_of
from agent.server.record import find_running, list_records
from tests.server.conftest import MakePlan, make_profile, starts

PROFILE = make_profile(batch=36, ubatch=36, batch_seconds=0.5)


def first(plan: LaunchPlan, tmp_path: Path) -> LaunchPlan:
    return replace(plan, speeds_file=tmp_path / "speeds.json")


def speed(tmp_path: Path) -> float | None:
    return known_rate(tmp_path / "speeds.json", reader_of(PROFILE, 1))


def spec_in_force(plan: LaunchPlan) -> dict[str, int]:
    return json.loads(records.spec_file(plan.runtime_folder, plan.fingerprint).read_text("utf-8"))


async def test_a_server_whose_batch_takes_too_long_is_started_once_more_with_a_smaller_one(
    plan: MakePlan, tmp_path: Path
):
    slow = first(plan("--reads-at", "40", profile=PROFILE), tmp_path)
    said: list[tuple[str, str]] = []
    endpoint = await ensure_running(slow, lambda state, seconds, detail: said.append((state, detail)))
    assert len(starts(tmp_path)) == 2
    assert find_running(slow.fingerprint, slow.runtime_folder) == endpoint
    assert (spec_in_force(slow)["batch"], spec_in_force(slow)["ubatch"]) == (20, 20)
    [record] = list_records(slow.runtime_folder)
    assert (record.batch_limit, record.pid) == (20, starts(tmp_path)[1])
    assert speed(tmp_path) == 40.0
    words = "reads 20 tokens at once instead of 36: at 40 tok/s, as read here last, that takes 0.50 s"
    assert ("starting", words) in said
    assert [state for state, _ in said].count("ready") == 1


async def test_a_server_that_reads_fast_enough_is_kept_and_its_speed_remembered(
    plan: MakePlan, tmp_path: Path
):
    await ensure_running(first(plan("--reads-at", "400", profile=PROFILE), tmp_path))
    assert len(starts(tmp_path)) == 1
    assert speed(tmp_path) == 400.0


async def test_a_server_that_times_nothing_is_taken_as_it_is(plan: MakePlan, tmp_path: Path):
    await ensure_running(first(plan(profile=PROFILE), tmp_path))
    assert len(starts(tmp_path)) == 1
    assert speed(tmp_path) is None


async def test_nothing_is_measured_where_the_speed_is_known_or_no_profile_asks(
    plan: MakePlan, tmp_path: Path
):
    await ensure_running(plan("--reads-at", "1", profile=PROFILE))
    await ensure_running(first(plan("--reads-at", "1", profile=make_profile(batch=36)), tmp_path))
    assert len(starts(tmp_path)) == 2
    assert not (tmp_path / "speeds.json").exists()


async def test_a_speed_that_cannot_be_written_down_still_chooses_the_batch(plan: MakePlan, tmp_path: Path):
    (tmp_path / "speeds.json").mkdir()
    slow = first(plan("--reads-at", "40", profile=PROFILE), tmp_path)
    await ensure_running(slow)
    assert spec_in_force(slow)["batch"] == 20
