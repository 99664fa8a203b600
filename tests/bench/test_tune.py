"""The search for the fastest settings, over a machine that is simulated: speeds that scatter, and a clock."""

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agent.bench.trial import Changes, Reading, Visit
from agent.bench.tune import Dimension, Enough, Search
from agent.core.errors import AgentError, ServerError

PROMPTS = ("a", "b", "c")
START_SECONDS = 5.0
REPLY_SECONDS = 10.0

Speed = Callable[[dict[str, Any]], float]


class SimulatedLab:
    """Measures what `speed` says, with noise, and lets a clock of its own go on."""

    def __init__(self, speed: Speed, noise: float = 0.02, seed: int = 1, drift: float = 0.0) -> None:
        self.now = 0.0
        self.requests = 0
        self._speed = speed
        self._noise = noise
        self._drift = drift
        self._random = random.Random(seed)

    def clock(self) -> float:
        return self.now

    async def measure(self, changes: Changes, enough: Enough) -> Sequence[Reading]:
        self.now += START_SECONDS
        true = self._speed(dict(changes))
        readings: list[Reading] = []
        for prompt in PROMPTS:
            self.now += REPLY_SECONDS
            self.requests += 1
            scatter = self._random.gauss(0, self._noise) - self._drift * self.now
            speed = true * math.exp(scatter) * (1 + 0.1 * PROMPTS.index(prompt))
            readings.append(Reading(prompt_id=prompt, speed=speed, decode_rate=speed))
            if enough(readings):
                break
        return readings


def ladder(key: str, start: int, values: Sequence[int]) -> Dimension:
    """Upwards and downwards from where the best one is."""

    def walks(best: Changes) -> list[list[Changes]]:
        now = dict(best).get(key, start)

        def with_(value: int) -> Changes:
            return tuple(sorted({**dict(best), key: value}.items()))

        up = [with_(value) for value in values if value > now]
        down = [with_(value) for value in reversed(values) if value < now]
        return [up, down]

    return Dimension(key, walks)


N_MAX = ladder("n_max", 4, (1, 2, 4, 8, 12, 16, 24, 32))
THREADS = ladder("threads", 4, (1, 2, 4, 6, 8))


def peak(settings: dict[str, Any]) -> float:
    """Fastest with n_max 12 and threads 6, both far from where the base is."""
    n_max, threads = settings.get("n_max", 4), settings.get("threads", 4)
    return 40 * math.exp(-((math.log(n_max / 12) / 2) ** 2)) * math.exp(-(((threads - 6) / 5) ** 2))


def search(lab: SimulatedLab, *dimensions: Dimension, minutes: float = 120) -> Search:
    return Search(lab, dimensions, minutes * 60, clock=lab.clock)


@pytest.mark.parametrize("seed", range(10))
async def test_finds_the_optimum_of_a_noisy_machine(seed: int):
    found = search(SimulatedLab(peak, seed=seed), N_MAX, THREADS)
    await found.run()
    assert found.is_confirmed
    assert peak(dict(found.best)) > 0.93 * 40
    assert found.gain == pytest.approx(peak(dict(found.best)) / peak({}), rel=0.05)


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.15])
async def test_never_reports_noise_as_a_win(noise: float):
    wins = 0
    for seed in range(40):
        found = search(SimulatedLab(lambda settings: 30.0, noise, seed), N_MAX, THREADS)
        await found.run()
        wins += found.is_confirmed
    assert wins == 0


async def test_a_machine_that_gets_slower_makes_no_winner():
    for seed in range(20):
        found = search(SimulatedLab(lambda settings: 30.0, 0.02, seed, drift=2e-4), N_MAX, THREADS)
        await found.run()
        assert not found.is_confirmed


async def test_a_gain_too_small_to_matter_is_none():
    found = search(SimulatedLab(lambda settings: 30.3 if settings else 30.0, noise=0.0005), N_MAX)
    await found.run()
    assert not found.is_confirmed


async def test_clearly_slower_candidates_are_dropped_after_one_prompt():
    lab = SimulatedLab(lambda settings: 30.0 if settings.get("n_max", 4) == 4 else 10.0)
    found = search(lab, N_MAX)
    await found.run()
    slower = [visit for visit in found.visits if visit.changes]
    assert [len(visit.readings) for visit in slower] == [1, 1]
    assert [dict(visit.changes)["n_max"] for visit in slower] == [8, 2]
    assert all(visit.is_dropped for visit in slower)


@pytest.mark.parametrize("minutes", [1, 5, 10, 20, 40])
async def test_the_budget_holds(minutes: float):
    lab = SimulatedLab(peak)
    found = search(lab, N_MAX, THREADS, minutes=minutes)
    await found.run()
    assert lab.now <= minutes * 60 + START_SECONDS + len(PROMPTS) * REPLY_SECONDS


async def test_without_time_to_compare_nothing_is_confirmed():
    found = search(SimulatedLab(peak), N_MAX, minutes=4)
    await found.run()
    assert not found.is_confirmed
    assert found.notes[0] == "one run takes 35 s, so less than 10 minutes can hardly show anything"


async def test_time_is_kept_free_for_the_comparison_that_decides():
    found = search(SimulatedLab(peak), N_MAX, THREADS, minutes=14)
    await found.run()
    assert found.is_confirmed


async def test_a_candidate_that_does_not_start_is_recorded_and_what_asks_for_more_is_not_tried():
    def speed(settings: dict[str, Any]) -> float:
        if settings.get("n_max", 4) > 8:
            raise ServerError("out of memory")
        return 10.0 + settings.get("n_max", 4)

    found = search(SimulatedLab(speed), N_MAX)
    await found.run()
    failed = [visit for visit in found.visits if visit.failure]
    assert [(visit.changes, visit.failure) for visit in failed] == [((("n_max", 12),), "out of memory")]
    assert (dict(found.best), found.is_confirmed) == ({"n_max": 8}, True)


async def test_a_base_that_does_not_start_is_an_error():
    def speed(settings: dict[str, Any]) -> float:
        raise ServerError("no such model")

    with pytest.raises(AgentError, match="no such model"):
        await search(SimulatedLab(speed), N_MAX).run()


async def test_the_best_so_far_is_measured_again_between_candidates():
    found = search(SimulatedLab(lambda settings: 30.0), N_MAX, THREADS)
    await found.run()
    purposes = [visit.purpose for visit in found.visits]
    assert purposes[:2] == ["base", "control"]
    assert purposes[2:].count("control") >= 1


async def test_what_was_measured_before_a_cancel_is_kept():
    lab = SimulatedLab(peak)
    found = search(lab, N_MAX, THREADS)
    seen: list[Visit] = []

    def watch(visit: Visit) -> None:
        seen.append(visit)
        if len(seen) == 6:
            raise asyncio.CancelledError

    found.watch = watch
    with pytest.raises(asyncio.CancelledError):
        await found.run()
    assert found.visits == seen
    assert dict(found.best) == {"n_max": 12}
    assert not found.is_confirmed


async def test_nothing_is_measured_twice_as_a_candidate():
    found = search(SimulatedLab(peak), N_MAX, THREADS, N_MAX)
    await found.run()
    screened = [visit.changes for visit in found.visits if visit.purpose == "screen"]
    assert len(screened) == len(set(screened))


async def test_one_run_that_fails_does_not_spoil_the_last_comparison():
    class Stumbling(SimulatedLab):
        async def measure(self, changes: Changes, enough: Enough) -> Sequence[Reading]:
            if changes and [visit.purpose for visit in found.visits].count("final") == 2:
                raise ServerError("stumbled")
            return await super().measure(changes, enough)

    found = search(Stumbling(peak), N_MAX)
    await found.run()
    assert [visit.failure for visit in found.visits if visit.failure] == ["stumbled"]
    assert found.is_confirmed
    assert [len(runs) for runs in found.final_runs] == [4, 4]
