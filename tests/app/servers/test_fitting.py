"""A server whose batch fits the machine: chosen at the start, learned from turns, left out of measuring."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.app.measure.benched import contestants
from agent.app.measure.benching import BenchRequest
from agent.app.servers.fitting import as_written, fit_to_machine, remember_read, remember_steps
from agent.app.servers.serving import Serving, choose
from agent.config.load import load_settings
from agent.core.stats import StepStats
from agent.resources import state_folder
from agent.server.reading_speed import FILE_NAME
from agent.server.slot_reading import Read


def serving(**settings: Any) -> Serving:
    return choose(load_settings(None, os.environ, {"profile": "embedded", "server.threads": 1, **settings}))


def read(evaluated: int, seconds: float) -> Read:
    return Read(tokens=evaluated, evaluated=evaluated, seconds=seconds, slot=0)


def batch(chosen: Serving) -> tuple[int, int | None, int]:
    fit = fit_to_machine(chosen.profile, chosen.loaded.settings.server.threads)
    return fit.profile.batch, fit.profile.speculation.n_max, fit.batch_limit


@pytest.fixture(autouse=True)
def _own_folders(homes: Path) -> None:
    """Each test has state and settings of its own."""


async def test_the_next_start_reads_as_much_at_once_as_the_last_turns_allow():
    chosen = serving()
    assert batch(chosen) == (36, 35, 0)
    step = StepStats(prompt_tokens=400, prompt_seconds=8.0)
    await remember_steps(chosen, [replace(step, prompt_tokens=20), replace(step, source="measured"), step])
    assert batch(chosen) == (18, 17, 18)
    assert batch(serving(**{"server.threads": 2})) == (36, 35, 0)


def test_reading_the_beginning_of_prompts_tells_a_speed_too():
    remember_read(serving(), read(1000, 40.0))
    assert batch(serving()) == (16, 15, 16)


def test_a_fitted_batch_changes_neither_the_server_that_is_looked_for_nor_its_saved_states():
    before = serving().fingerprint
    remember_read(serving(), read(1000, 40.0))
    assert serving().fingerprint == before


def test_where_nothing_can_be_written_nothing_is_said():
    (state_folder() / FILE_NAME).mkdir(parents=True)
    remember_read(serving(), read(1000, 40.0))
    assert batch(serving()) == (36, 35, 0)


def test_profiles_for_gpus_are_neither_fitted_nor_remembered():
    for name in ("gemma4-31b", "qwen3.6-27b-dflash"):
        chosen = serving(profile=name)
        remember_read(chosen, read(1000, 1.0))
        assert (chosen.profile.batch_seconds, as_written(chosen)) == (0, chosen)
    assert not (state_folder() / FILE_NAME).exists()


def test_agent_bench_measures_what_the_profile_says_on_a_server_of_its_own(work: Path):
    remember_read(serving(), read(1000, 40.0))
    measured, fitted = (
        contestants(BenchRequest(profiles=("embedded",), threads=1, fits_batch=fits))
        for fits in (False, True)
    )
    [exact], [like_sessions] = measured, fitted
    assert batch(exact.serving) == (36, 35, 0)
    assert batch(like_sessions.serving) == (16, 15, 16)
    assert exact.serving.fingerprint != like_sessions.serving.fingerprint
    assert exact.serving.measured_as == like_sessions.serving.fingerprint


def test_a_plain_twin_is_measured_as_the_profile_says_too(work: Path):
    request = BenchRequest(profiles=("embedded",), threads=1, against_plain=True)
    twin, one = (found.serving for found in contestants(request))
    assert {twin.profile.batch_seconds, one.profile.batch_seconds} == {0}
    assert twin.measured_as not in ("", twin.fingerprint)


@pytest.mark.parametrize("fits", [False, True])
def test_a_plain_twin_of_another_program_is_another_server(
    work: Path, monkeypatch: pytest.MonkeyPatch, fits: bool
):
    """What was measured with one llama-server says nothing about another one."""
    request = BenchRequest(profiles=("qwen3.6-27b-dflash",), against_plain=True, fits_batch=fits)
    twins = []
    for program in ("/opt/one/llama-server", "/opt/other/llama-server"):
        monkeypatch.setenv("AGENT_SERVER_BINARY", program)
        twins.append(contestants(request)[0].serving)
    assert twins[0].fingerprint != twins[1].fingerprint
