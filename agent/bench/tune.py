"""Looks for the fastest settings by measured runs, one dimension after the other, within a budget of time.

Nothing here knows what a setting means or how a server is started. The rules, because speed scatters and a
budget is short:

- A candidate is first measured once, against the best so far, which is measured again every few candidates.
  It is dropped after its first prompt if it is clearly slower, and the rest of its direction with it.
- Only the most promising one of a dimension takes on the best so far, in alternating runs.
- At the end the best one and the base alternate once more. Only those runs decide whether anything was won,
  because whoever was chosen from many was also lucky.
"""

import asyncio
import math
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.bench.trial import (
    Changes,
    Purpose,
    Reading,
    Visit,
    gain_over,
    is_faster,
    median_gain,
    noise_of,
)
from agent.core.errors import AgentError

CLEARLY = 0.08
"""By how much at least a candidate has to be slower to be dropped after one prompt."""
DUEL_ROUNDS = 2
FINAL_ROUNDS = (4, 6)
"""After how many runs of each the last comparison may end, and when it has to."""
_CONTROL_AFTER = 3
_CHALLENGERS = 2
_PATIENCE = 4.0
_LEAST_PATIENCE_SECONDS = 60.0
"""A short run may well take many times as long when the machine does something else."""
_SHARE_FOR_THE_END = 0.6
_BROKEN_RUNS = 1
"""So many may fail in the last comparison."""
_LEAST_RUNS = 2 + 2 + 2 * DUEL_ROUNDS + 2 * FINAL_ROUNDS[0]
"""Base, candidates, a duel and the last comparison."""

Enough = Callable[[Sequence[Reading]], bool]


class Lab(Protocol):
    """Measures candidates; `agent.app.measure.tuning` has the real one."""

    async def measure(self, changes: Changes, enough: Enough) -> Sequence[Reading]:
        """Serves the base with `changes` and sends each prompt once, unless `enough` says that this will do.

        Raises:
            AgentError: it does not start, or fails.
        """
        ...


@dataclass(frozen=True, slots=True)
class Dimension:
    """One thing to vary. `walks` gives, for the best so far, directions: candidates of which each goes a step
    further than the one before, so that nothing behind a clearly slower one is tried.
    """

    name: str
    walks: Callable[[Changes], Sequence[Sequence[Changes]]]


class _OutOfTimeError(Exception):
    """What comes next would not fit into the budget."""


@dataclass(slots=True)
class Search:
    """See `run`. What was found so far can be read at any time, also after a cancel."""

    lab: Lab
    dimensions: Sequence[Dimension]
    seconds: float
    clock: Callable[[], float] = time.monotonic
    watch: Callable[[Visit], None] = lambda visit: None
    best: Changes = ()
    visits: list[Visit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _begin: float = 0.0
    _since_control: int = 0
    _failure: AgentError | None = None

    async def run(self) -> None:
        """Searches until everything was tried or the time is up.

        Raises:
            AgentError: the base itself cannot be measured.
        """
        self._begin = self.clock()
        await self._visit((), "base")
        if self._failure is not None:
            raise self._failure
        try:
            await self._affordable("control")
            for dimension in self.dimensions:
                await self._explore(dimension)
        except _OutOfTimeError:
            self.notes.append(self._about_time())
        await self._compare_with_base()

    @property
    def final_runs(self) -> tuple[list[Visit], list[Visit]]:
        """The alternating runs at the end: of the best one, and of the base."""
        final = [visit for visit in self.visits if visit.purpose == "final" and visit.is_whole]
        mine, base = ([one for one in final if one.changes == changes] for changes in (self.best, ()))
        return mine[: len(base)], base[: len(mine)]

    @property
    def is_confirmed(self) -> bool:
        """Whether the best one is faster than the base, beyond the noise."""
        mine, base = self.final_runs
        return bool(self.best) and len(base) >= FINAL_ROUNDS[0] and is_faster(_speeds(mine), _speeds(base))

    @property
    def gain(self) -> float | None:
        """Best against base, 1.2 is a fifth faster: by the runs at the end, or by all without them."""
        mine, base = self.final_runs
        if not base:
            mine, base = self._whole(self.best), self._whole(())
        return math.exp(median_gain(_speeds(mine), _speeds(base))) if mine and base else None

    def candidates(self) -> list[Changes]:
        """Everything that was tried, in order; the base first."""
        return list(dict.fromkeys(visit.changes for visit in self.visits))

    async def _explore(self, dimension: Dimension) -> None:
        promising: list[tuple[float, Changes]] = []
        try:
            for walk in dimension.walks(self.best):
                await self._walk(walk, promising)
            for _ in range(_CHALLENGERS):
                challenger = self._most_promising(promising)
                if challenger is None:
                    return
                if await self._wins_duel(challenger):
                    self.best = challenger
                    return
                promising[:] = [one for one in promising if one[1] != challenger]
        except (_OutOfTimeError, asyncio.CancelledError):
            # Out of time: the comparison at the end is still made, and judges better than a duel.
            # Cancelled: what has shown promise can be offered.
            self.best = self.best or self._most_promising(promising) or ()
            raise

    def _most_promising(self, found: Sequence[tuple[float, Changes]]) -> Changes | None:
        gain, changes = max(found, key=lambda one: one[0], default=(0.0, ()))
        return changes if gain > self._noise() else None

    async def _walk(self, walk: Sequence[Changes], found: list[tuple[float, Changes]]) -> None:
        """Measures step after step, adding gain and candidate to `found`, until one is clearly slower."""
        highest = 0.0
        for changes in walk:
            if changes == self.best or any(visit.changes == changes for visit in self.visits):
                continue
            if self._since_control >= _CONTROL_AFTER:
                await self._affordable("control", self.best)
            visit = await self._affordable("screen", changes)
            self._since_control += 1
            if visit.failure or visit.is_dropped or not visit.readings:
                return
            gain = gain_over(visit.readings, self._controls())
            found.append((gain, changes))
            highest = max(highest, gain)
            if gain < highest - 2 * self._noise():
                return

    async def _wins_duel(self, challenger: Changes) -> bool:
        mine: list[Visit] = []
        others: list[Visit] = []
        for _ in range(DUEL_ROUNDS):
            others.append(await self._affordable("duel", self.best))
            mine.append(await self._affordable("duel", challenger))
            if not (mine[-1].is_whole and others[-1].is_whole):
                return False
        return median_gain(_speeds(mine), _speeds(others)) > max(0.01, self._noise())

    async def _compare_with_base(self) -> None:
        """The runs that decide. The order is turned round each time, so that a drift favours nobody."""
        if not self.best:
            return
        least, most = FINAL_ROUNDS
        for number in range(most):
            for changes in ((), self.best) if number % 2 == 0 else (self.best, ()):
                if self._left() < self._length():
                    self.notes.append("the time was up before the last comparison was complete")
                    return
                await self._visit(changes, "final")
            broken = [visit for visit in self.visits if visit.purpose == "final" and not visit.is_whole]
            if len(broken) > _BROKEN_RUNS:
                self.notes.append(f"the last comparison broke off: {broken[-1].failure or 'no speed'}")
                return
            done = len(self.final_runs[0])
            if done >= least and (self.is_confirmed or (self.gain or 0) <= 1):
                return

    def _about_time(self) -> str:
        length = self._length()
        if self.seconds >= _LEAST_RUNS * length:
            return "the time was up before everything was tried"
        least = math.ceil(_LEAST_RUNS * length / 60)
        return f"one run takes {length:.0f} s, so less than {least} minutes can hardly show anything"

    async def _affordable(self, purpose: Purpose, changes: Changes = ()) -> Visit:
        """A visit for which there is time beside the last comparison. Raises _OutOfTimeError."""
        reserve = min(2 * FINAL_ROUNDS[0] * self._length(), _SHARE_FOR_THE_END * self.seconds)
        if self._left() < self._length() + reserve:
            raise _OutOfTimeError
        return await self._visit(changes, purpose)

    async def _visit(self, changes: Changes, purpose: Purpose) -> Visit:
        controls, dropped, begin = self._controls(), False, self.clock()

        def enough(readings: Sequence[Reading]) -> bool:
            nonlocal dropped
            limit = max(CLEARLY, 3 * self._request_noise() / math.sqrt(len(readings)))
            dropped = purpose == "screen" and gain_over(readings, controls) < -limit
            return dropped

        readings, failure = await self._measured(self.lab.measure(changes, enough))
        visit = Visit(
            changes=changes,
            purpose=purpose,
            readings=tuple(readings),
            is_dropped=dropped,
            failure=failure,
            seconds=self.clock() - begin,
        )
        self.visits.append(visit)
        if changes == self.best:
            self._since_control = 0
        self.watch(visit)
        return visit

    async def _measured(self, work: Awaitable[Sequence[Reading]]) -> tuple[Sequence[Reading], str]:
        """The readings, or why there are none. Nothing may take many times as long as the base."""
        limit = max(_PATIENCE * self._length(), _LEAST_PATIENCE_SECONDS) if self.visits else None
        try:
            return await asyncio.wait_for(work, limit), ""
        except TimeoutError:
            return (), f"given up after {limit:.0f} s; a run of the base takes {self._length():.0f} s"
        except AgentError as error:
            self._failure = error
            return (), error.message

    def _whole(self, changes: Changes) -> list[Visit]:
        return [visit for visit in self.visits if visit.changes == changes and visit.is_whole]

    def _controls(self) -> list[Visit]:
        return self._whole(self.best)[-2:]

    def _length(self) -> float:
        """Seconds that one more visit will take."""
        whole = [visit.seconds for visit in self.visits if visit.is_whole]
        return statistics.median(whole) if whole else 0.0

    def _left(self) -> float:
        return self.seconds - (self.clock() - self._begin)

    def _request_noise(self) -> float:
        return noise_of(self.visits)

    def _noise(self) -> float:
        """Of the mean over the prompts of a visit."""
        prompts = max((len(visit.readings) for visit in self.visits), default=1)
        return self._request_noise() / math.sqrt(max(1, prompts))


def _speeds(visits: Sequence[Visit]) -> list[float]:
    return [visit.speed for visit in visits if visit.speed]
