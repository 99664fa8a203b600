"""Expected speed is a range that says where it is from."""

from pathlib import Path

import pytest

from agent.app.setup.sizes import size_of
from agent.app.setup.speed import Speed, expected_speed
from agent.bench.baseline import Baseline
from agent.server.hardware import Gpu
from agent.server.model_file import ModelFile
from agent.server.profile import Profile
from agent.server.profile_files import load_profile
from tests.app.setup.rig import gpu, hardware

PROFILES = [Path(__file__).parents[3] / "server_profiles"]
WEIGHTS = 18_000_000_000


def speed_of(profile: str | Profile, *gpus: Gpu, weights: int = WEIGHTS) -> Speed | None:
    chosen = load_profile(profile, PROFILES) if isinstance(profile, str) else profile
    return expected_speed(chosen, weights, hardware(*gpus), gpu=bool(gpus))


def test_figures_of_others_are_scaled_by_memory_bandwidth():
    on_3090 = speed_of("gemma4-31b-dflash", gpu(24, "NVIDIA GeForce RTX 3090"))
    on_4090 = speed_of("gemma4-31b-dflash", gpu(24))
    assert on_3090 is not None
    assert on_4090 is not None
    assert (on_3090.source, on_3090.low, on_3090.high) == ("reported", 47, 135)
    assert on_4090.high == pytest.approx(135 * 1008 / 936)
    assert "RTX 3090" in on_4090.how


def test_rule_of_memory_bandwidth_is_called_an_estimate():
    found = speed_of("qwen3.6-27b", gpu(24))
    assert found is not None
    assert found.source == "estimate"
    assert found.low == pytest.approx(28)
    assert found.high == pytest.approx(50.4)
    assert "estimate" in str(found)


def test_drafting_widens_the_range_and_does_not_move_its_lower_end():
    plain, drafting = speed_of("qwen3.6-27b", gpu(24)), speed_of("qwen3.6-27b-mtp", gpu(24))
    assert plain is not None
    assert drafting is not None
    assert drafting.low == plain.low
    assert drafting.high == 2 * plain.high


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 4090 Laptop GPU", "Something New 9000"])
def test_nothing_is_said_about_a_card_that_is_not_known(name: str):
    assert speed_of("qwen3.6-27b", gpu(24, name)) is None


def test_longest_name_decides():
    names = ("NVIDIA GeForce RTX 4070 Ti SUPER", "NVIDIA GeForce RTX 4070")
    one, other = (speed_of("qwen3.6-27b", gpu(24, name)) for name in names)
    assert one is not None
    assert other is not None
    assert one.low / other.low == pytest.approx(672 / 504)


def test_what_was_measured_here_wins():
    profile = load_profile("embedded", PROFILES)
    baseline = Baseline(
        profile="embedded", suite="coding", decode_rate=9.5, prompt_rate=None, speculation="none",
        accept_rate=None, machine="", samples=2, measured_at="2026-01-02T03:04:05",
    )  # fmt: skip
    found = expected_speed(profile, 10**9, hardware(), gpu=False, baseline=baseline)
    assert str(found) == "9.5 tok/s, measured here on 2026-01-02"


@pytest.mark.parametrize(
    ("name", "drafter", "low", "high"),
    [
        ("gemma-4-31B-it-Q4_K_S.gguf", False, 17e9, 19e9),
        ("gemma4-31b-it-dflash-Q5_K_M.gguf", True, 0.8e9, 1.6e9),
        ("Qwen3-14B-Q4_K_M.gguf", False, 8e9, 9.5e9),
        ("Qwen3-30B-A3B-Q4_K_M.gguf", False, 17e9, 19e9),
        ("model.gguf", False, 0, 0),
    ],
)
def test_size_follows_from_the_name(name: str, drafter: bool, low: float, high: float):
    assert low <= size_of(ModelFile(file=name), is_drafter=drafter).bytes <= high
