"""The order of the runs, and what is kept when a server fails.

Speed drifts (heat, other programs), so servers are compared in turns: request by request where all of them
can be up at once, in blocks A B A B where one has to make room for the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agent.bench.measure import MeasureOptions, measure
from agent.bench.prompt import BenchPrompt
from agent.bench.result import BenchResult, Sample, ServerReport
from agent.core.errors import AgentError, ServerError
from agent.server.record import Endpoint

WARM_UP_TOKENS = 16
_FAILURES_IN_A_ROW = 2


class Contestant(Protocol):
    """A server that takes part. `report` is filled while it runs."""

    report: ServerReport
    options: MeasureOptions

    async def open(self) -> Endpoint:
        """The server, ready. Raises AgentError."""
        ...

    async def close(self) -> None:
        """Stops it, if this benchmark started it."""
        ...

    def why_it_ended(self, endpoint: Endpoint) -> AgentError | None:
        """Why a server that was ready is no longer there; None while it is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """`runs` of each prompt on each server; in blocks, they are spread over `rounds`."""

    prompts: Sequence[BenchPrompt]
    runs: int = 3
    rounds: int = 2
    together: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What is being done, for a line of progress. `tokens` and `seconds` are those of the running request."""

    server: str
    what: str
    done: int
    total: int
    tokens: int = 0
    seconds: float = 0.0


Watcher = Callable[[Step], None]
Keep = Callable[[Sample], Sample]
"""Called with each new sample; returns it with the file that its raw reply was written to."""


class Runner:
    """Runs a plan. What is measured goes to `result` at once, so a caller that is cancelled still has it."""

    def __init__(
        self,
        plan: RunPlan,
        contestants: Sequence[Contestant],
        result: BenchResult,
        *,
        watch: Watcher = lambda step: None,
        keep: Keep = lambda sample: sample,
    ) -> None:
        self._plan = plan
        self._contestants = contestants
        self._result = result
        self._watch = watch
        self._keep = keep
        self._done = 0
        self._failures: dict[str, int] = {}

    async def run(self) -> None:
        """All runs. Failures of servers are written into their reports, never raised."""
        try:
            if self._plan.together:
                await self._in_turns()
            else:
                await self._in_blocks()
        finally:
            for contestant in self._contestants:
                await contestant.close()

    async def _in_turns(self) -> None:
        endpoints = [(one, endpoint) for one in self._contestants if (endpoint := await self._ready(one))]
        for run in range(1, self._plan.runs + 1):
            for prompt in self._plan.prompts:
                for contestant, endpoint in endpoints:
                    await self._sample(contestant, endpoint, prompt, run)

    async def _in_blocks(self) -> None:
        for block in blocks(self._plan.runs, self._plan.rounds):
            for contestant in self._contestants:
                if contestant.report.failure or not (endpoint := await self._ready(contestant)):
                    continue
                for run in block:
                    for prompt in self._plan.prompts:
                        await self._sample(contestant, endpoint, prompt, run)
                if len(self._contestants) > 1:
                    await contestant.close()

    async def _ready(self, contestant: Contestant) -> Endpoint | None:
        """The server, warm; None with the reason in its report."""
        report = contestant.report
        self._tell(contestant, "starting")
        try:
            endpoint = await contestant.open()
            self._tell(contestant, "warming up")
            options = replace(contestant.options, max_tokens=WARM_UP_TOKENS, seed=self._plan.seed)
            await measure(endpoint, self._plan.prompts[0], options)
        except AgentError as error:
            _fail(report, error)
            return None
        return endpoint

    async def _sample(
        self, contestant: Contestant, endpoint: Endpoint, prompt: BenchPrompt, run: int
    ) -> None:
        report = contestant.report
        if report.failure:
            return
        what = f"{prompt.id}, run {run} of {self._plan.runs}"
        self._tell(contestant, what)
        seed = None if self._plan.seed is None else self._plan.seed + run - 1
        options = replace(
            contestant.options,
            seed=seed,
            progress=lambda tokens, seconds: self._tell(contestant, what, tokens, seconds),
        )
        sample = Sample(server=report.name, prompt_id=prompt.id, category=prompt.category, run=run)
        try:
            sample = replace(sample, measurement=await measure(endpoint, prompt, options))
            self._failures[report.name] = 0
        except ServerError as error:
            sample = replace(sample, error=error.message)
            self._note_failure(contestant, endpoint, error)
        self._done += 1
        self._result.samples.append(self._keep(sample))

    def _note_failure(self, contestant: Contestant, endpoint: Endpoint, error: ServerError) -> None:
        """A request may fail once; a server that is gone, or fails again, takes no further part."""
        report = contestant.report
        ended = contestant.why_it_ended(endpoint)
        self._failures[report.name] = self._failures.get(report.name, 0) + 1
        if ended is not None:
            _fail(report, ended)
        elif self._failures[report.name] >= _FAILURES_IN_A_ROW:
            _fail(report, error)

    def _tell(self, contestant: Contestant, what: str, tokens: int = 0, seconds: float = 0.0) -> None:
        total = self._plan.runs * len(self._plan.prompts) * len(self._contestants)
        self._watch(Step(contestant.report.name, what, self._done, total, tokens, seconds))


def blocks(runs: int, rounds: int) -> list[list[int]]:
    """The numbers of the runs, spread over the rounds as evenly as can be: 3 in 2 are [1, 2] and [3]."""
    rounds = max(1, min(rounds, runs))
    short, more = divmod(runs, rounds)
    numbers = iter(range(1, runs + 1))
    return [[next(numbers) for _ in range(short + (index < more))] for index in range(rounds)]


def _fail(report: ServerReport, error: AgentError) -> None:
    report.failure = str(error)
    report.failure_code = int(error.exit_code)
