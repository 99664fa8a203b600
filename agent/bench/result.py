"""What a benchmark has found: plain data between the runs and the reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.bench.measure import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request that was measured, or failed. `run` counts from 1, for each prompt and server."""

    server: str
    prompt_id: str
    category: str
    run: int
    measurement: Measurement | None = None
    error: str = ""
    raw_file: str = ""


@dataclass(slots=True, kw_only=True)
class ServerReport:
    """One of the servers that are compared. `baseline` is the name of that which it is compared with.

    `facts` are what a reader wants to know of it (engine, build, model, settings). `failure` says why it
    has no results, or no more. `baseline_key` is under what its speed is remembered.
    """

    name: str
    baseline: str = ""
    baseline_key: str = ""
    speculation: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    failure: str = ""
    failure_code: int = 0


@dataclass(slots=True, kw_only=True)
class BenchResult:
    """Everything of one benchmark. `samples` are in the order in which they were measured."""

    suite: str
    started: str
    servers: list[ServerReport]
    settings: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    prompts: Sequence[tuple[str, str, str]] = ()
    samples: list[Sample] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_greedy: bool = False
    is_interrupted: bool = False
    seconds: float = 0.0

    def of(self, server: str, prompt_id: str | None = None) -> list[Sample]:
        """The samples of one server, and of one prompt if given."""
        return [
            sample
            for sample in self.samples
            if sample.server == server and prompt_id in (None, sample.prompt_id)
        ]

    @property
    def measured(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.measurement]
