"""What is measured while the fastest settings are looked for, and when a difference is one.

Plain data and plain functions. A speed is tokens of a reply per second with the time for its prompt in it, so
that what helps one and hurts the other is weighed.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from agent.bench.figures import Spread
from agent.bench.measure import Measurement

Changes = tuple[tuple[str, Any], ...]
"""Keys of the profile (`threads`, `speculation.n_max`) with new values, in order; empty for the base. None
takes a key out, so that the engine decides."""
Purpose = Literal["base", "control", "screen", "duel", "final"]

LEAST_GAIN = 0.03
"""What is less is not worth a profile of its own, however sure it is."""
SURE = 0.02
"""How likely chance alone may put the runs of two equal candidates in such an order."""
_FIRST_GUESS_OF_NOISE = 0.03
_LEAST_NOISE = 0.005
_MAD_TO_SIGMA = 1.4826
_MEDIAN_TO_MEAN_ERROR = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One request. `speed` in tok/s as explained above, `decode_rate` without the prompt."""

    prompt_id: str
    speed: float
    decode_rate: float
    prompt_rate: float | None = None
    decoded: int = 0
    drafted: int | None = None
    accepted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One start of a server and what was measured on it: each prompt once, unless it was `dropped`.

    `failure` says why nothing was measured; `seconds` is all the time that it took.
    """

    changes: Changes
    purpose: Purpose
    readings: tuple[Reading, ...] = ()
    is_dropped: bool = False
    failure: str = ""
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        return bool(self.readings) and not self.is_dropped and not self.failure

    @property
    def speed(self) -> float | None:
        """The geometric mean over its prompts; None where nothing was measured."""
        return _middle([one.speed for one in self.readings])

    @property
    def decode_rate(self) -> float | None:
        return _middle([one.decode_rate for one in self.readings])


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What several visits of one candidate say together."""

    visits: int
    requests: int
    speed: Spread | None
    decode_rate: Spread | None
    prompt_rate: Spread | None
    drafted: int | None
    accepted: int | None

    @property
    def acceptance(self) -> float | None:
        """Accepted ÷ drafted; None where nothing was drafted or nothing is known of it."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None

    def as_table(self) -> dict[str, Any]:
        spreads = {"speed_t_s": self.speed, "pred_t_s": self.decode_rate, "prompt_t_s": self.prompt_rate}
        return {
            "visits": self.visits,
            "requests": self.requests,
            **{name: spread.as_table() if spread else None for name, spread in spreads.items()},
            "draft_n": self.drafted,
            "accepted": self.accepted,
            "accept_rate": self.acceptance,
        }


def reading_of(measurement: Measurement, reply_tokens: int) -> Reading | None:
    """The reading for a reply of `reply_tokens`, however long it was; None where it has no speed."""
    rate = measurement.decode_rate
    if not rate:
        return None
    prompt_rate = measurement.prompt_rate
    waiting = (measurement.prompt_tokens or 0) / prompt_rate if prompt_rate else 0.0
    return Reading(
        prompt_id=measurement.prompt_id,
        speed=reply_tokens / (waiting + reply_tokens / rate),
        decode_rate=rate,
        prompt_rate=prompt_rate,
        decoded=measurement.decoded_tokens,
        drafted=measurement.drafted,
        accepted=measurement.accepted,
    )


def figures_of(visits: Iterable[Visit]) -> Figures:
    """Over whole visits, and over all where none is whole."""
    measured = [visit for visit in visits if visit.readings]
    chosen = [visit for visit in measured if visit.is_whole] or measured
    readings = [reading for visit in chosen for reading in visit.readings]
    drafted = [one.drafted for one in readings if one.drafted is not None]
    accepted = [one.accepted for one in readings if one.accepted is not None]
    return Figures(
        visits=len(chosen),
        requests=len(readings),
        speed=Spread.of(visit.speed for visit in chosen),
        decode_rate=Spread.of(visit.decode_rate for visit in chosen),
        prompt_rate=Spread.of(one.prompt_rate for one in readings),
        drafted=sum(drafted) if drafted else None,
        accepted=sum(accepted) if accepted else None,
    )


def gain_over(readings: Sequence[Reading], controls: Sequence[Visit]) -> float:
    """How much faster than the controls, as a logarithm: 0.1 is about 10 %. Compared prompt by prompt."""
    gains = []
    for one in readings:
        same = [
            other.speed for visit in controls for other in visit.readings if other.prompt_id == one.prompt_id
        ]
        if same:
            gains.append(math.log(one.speed / statistics.median(same)))
    return statistics.fmean(gains) if gains else 0.0


def noise_of(visits: Sequence[Visit]) -> float:
    """How much one request scatters (standard deviation of the logarithm), by what was measured again."""
    differences: list[float] = []
    latest: dict[tuple[Changes, str], float] = {}
    for visit in visits:
        for one in visit.readings:
            before = latest.get((visit.changes, one.prompt_id))
            if before is not None:
                differences.append(abs(math.log(one.speed / before)))
            latest[visit.changes, one.prompt_id] = one.speed
    if not differences:
        return _FIRST_GUESS_OF_NOISE
    return max(_LEAST_NOISE, _MAD_TO_SIGMA * statistics.median(differences) / math.sqrt(2))


def median_gain(ours: Sequence[float], others: Sequence[float]) -> float:
    """Of the medians, as a logarithm."""
    return math.log(statistics.median(ours) / statistics.median(others))


def is_faster(ours: Sequence[float], others: Sequence[float], least: float = LEAST_GAIN) -> bool:
    """Whether alternating runs show more than noise.

    Two things have to hold: the medians lie further apart than `least` and than three times what medians of
    so few runs scatter, and chance would hardly ever (`SURE`) bring the runs of equals into this order. The
    second takes at least four runs of each.
    """
    if len(ours) < 2 or len(others) < 2:
        return False
    logs = [[math.log(value) for value in values] for values in (ours, others)]
    residuals = [abs(value - statistics.median(values)) for values in logs for value in values]
    sigma = _MAD_TO_SIGMA * statistics.median(residuals)
    error = _MEDIAN_TO_MEAN_ERROR * sigma * math.sqrt(1 / len(ours) + 1 / len(others))
    gain = median_gain(ours, others)
    return gain > max(math.log1p(least), 3 * error) and by_chance(ours, others) <= SURE


def by_chance(ours: Sequence[float], others: Sequence[float]) -> float:
    """How likely equals give ranks that speak so much for `ours` (exact rank-sum test, one side)."""
    ordered = sorted([*ours, *others])
    places = [[place for place, other in enumerate(ordered) if other == value] for value in ordered]
    ranks = [statistics.fmean(same) for same in places]
    of_value = dict(zip(ordered, ranks, strict=True))
    seen = sum(of_value[value] for value in ours)
    splits = [sum(chosen) for chosen in combinations(ranks, len(ours))]
    return sum(one >= seen - 1e-9 for one in splits) / len(splits)


def _middle(values: Sequence[float]) -> float | None:
    return math.exp(statistics.fmean(map(math.log, values))) if values else None
