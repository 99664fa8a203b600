"""How fast a profile may be on this machine, as a range that says where it is from.

Writing a token reads all weights once, so memory bandwidth ÷ size of the weights is the most that is possible
without drafting; servers reach half of it or more. What drafting gains depends on the text.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agent.bench.baseline import Baseline
from agent.server.hardware import Hardware
from agent.server.profile import Profile

Source = Literal["measured", "reported", "estimate"]
_EFFICIENCY = (0.5, 0.9)
_LEAST_OF_A_CPU = 0.25
"""Processors are also limited by how fast they compute, the more so the smaller the model."""
_GAINS: Mapping[str, float] = {
    "dflash": 3.5, "eagle3": 2.5, "dspark": 3.0, "mtp": 2.0, "draft": 2.0,
}  # fmt: skip
"""The most that drafting with a model was reported to gain, on code; with prose it may gain nothing."""
_CONTEXT_GAIN = 1.5
_CPU_BANDWIDTH = (20e9, 60e9)
"""Two channels of DDR4, of fast DDR5."""
_CPU_BANDWIDTH_OF_A_CORE = (5e9, 15e9)


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens per second. `how` says for people where the range is from."""

    low: float
    high: float
    source: Source
    how: str

    def __str__(self) -> str:
        if self.source == "measured":
            return f"{_shown(self.low)} tok/s, {self.how}"
        return f"{_shown(self.low)} to {_shown(self.high)} tok/s, {self.how}"

    @property
    def in_short(self) -> str:
        """Without how it was found."""
        range_shown = f"{_shown(self.low)} to " if self.source != "measured" else ""
        return f"{range_shown}{_shown(self.high)} tok/s ({self.source})"


def measured_speed(baseline: Baseline) -> Speed:
    """What was measured here before."""
    rate = baseline.decode_rate
    return Speed(rate, rate, "measured", f"measured here on {baseline.measured_at[:10]}")


def expected_speed(
    profile: Profile, weights: int, hardware: Hardware, *, gpu: bool, baseline: Baseline | None = None
) -> Speed | None:
    """What to expect, None where nothing can be said.

    Args:
        weights: bytes of the target's file, 0 = not known.
        gpu: whether it would run on the graphics processor.
        baseline: what was measured of this profile here.
    """
    if baseline is not None:
        return measured_speed(baseline)
    table = tomllib.loads(Path(__file__).with_name("speed.toml").read_text("utf-8"))
    bandwidth = _bandwidth(hardware, table["gpu"], gpu)
    if bandwidth is None:
        return None
    reported = _reported(profile, bandwidth[1], table) if gpu else None
    if reported is not None:
        return reported
    if not weights:
        return None
    low = bandwidth[0] * (_EFFICIENCY[0] if gpu else _LEAST_OF_A_CPU) / weights
    high = bandwidth[1] * _EFFICIENCY[1] / weights
    how = "estimate: memory bandwidth ÷ size of the weights"
    if profile.speculation.kind != "none":
        high *= _GAINS.get(profile.speculation.kind, _CONTEXT_GAIN)
        how += ", the upper end with drafting that works well"
    return Speed(low, high, "estimate", how)


def _bandwidth(hardware: Hardware, known: Mapping[str, float], gpu: bool) -> tuple[float, float] | None:
    """Bytes per second, between which bounds."""
    if not gpu:
        cores = max(1, hardware.physical_cores)
        low, high = (
            min(whole, cores * one)
            for whole, one in zip(_CPU_BANDWIDTH, _CPU_BANDWIDTH_OF_A_CORE, strict=True)
        )
        return low, high
    name = hardware.gpus[0].name if hardware.gpus else ""
    if "laptop" in name.lower() or "mobile" in name.lower():
        return None  # the same names, with less bandwidth
    words = f" {name.lower()} "
    fitting = [one for one in known if f" {one.lower()} " in words.replace("-", " ")]
    if not fitting:
        return None
    value = known[max(fitting, key=len)] * 1e9
    return value, value


def _reported(profile: Profile, bandwidth: float, table: Mapping[str, Any]) -> Speed | None:
    """What others measured with the same files, scaled by the bandwidth of the two cards."""
    target = profile.target.file if profile.target else ""
    for one in table["reported"]:
        if one["target"] == target and one["kind"] == profile.speculation.kind:
            scale = bandwidth / (table["gpu"][one["card"]] * 1e9)
            scaled = "" if scale == 1 else ", scaled by memory bandwidth"
            how = f"reported for a {one['card']}{scaled} ({one['source']})"
            return Speed(one["low"] * scale, one["high"] * scale, "reported", how)
    return None


def _shown(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"
