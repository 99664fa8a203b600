"""Measurements and results without a server."""

from collections.abc import Callable, Sequence
from typing import Any

from agent.bench.measure import Measurement, MeasureOptions
from agent.bench.prompt import BenchPrompt
from agent.bench.result import BenchResult, Sample, ServerReport
from agent.core.errors import AgentError
from agent.server.record import Endpoint
from tests.fakes.scripted_server import ScriptedServer

PROMPT = BenchPrompt.of_text("Say something.", "first", "coding")
OTHER_PROMPT = BenchPrompt.of_text("Say more.", "second", "writing")


def endpoint_of(server: ScriptedServer, key: str = "") -> Endpoint:
    return Endpoint(base_url=server.url, api_key=key, profile="scripted", context_tokens=0)


def measurement(**changes: Any) -> Measurement:
    """100 prompt tokens in 1 s, 50 tokens in 5 s, unless something else is wanted."""
    values: dict[str, Any] = {
        "prompt_id": "first",
        "category": "coding",
        "text": "done",
        "finish_reason": "stop",
        "prompt_tokens": 100,
        "cached_tokens": 0,
        "decoded_tokens": 50,
        "prompt_seconds": 1.0,
        "decode_seconds": 5.0,
        "total_seconds": 6.0,
        "first_token_seconds": 1.0,
        "measured_here": False,
        "drafted": 0,
        "accepted": 0,
    }
    return Measurement(**(values | changes))


def sample(server: str, run: int = 1, error: str = "", prompt_id: str = "first", **changes: Any) -> Sample:
    return Sample(
        server=server,
        prompt_id=prompt_id,
        category="coding",
        run=run,
        error=error,
        measurement=None if error else measurement(prompt_id=prompt_id, **changes),
    )


def result_of(*samples: Sample, **changes: Any) -> BenchResult:
    """A result in which the first server is the baseline of the others."""
    names = list(dict.fromkeys(one.server for one in samples))
    prompts = dict.fromkeys(one.prompt_id for one in samples)
    values: dict[str, Any] = {
        "suite": "coding",
        "started": "2026-01-02T03:04:05+00:00",
        "servers": [ServerReport(name=name, baseline="" if name == names[0] else names[0]) for name in names],
        "samples": list(samples),
        "prompts": [(identity, "", "Say something.") for identity in prompts],
    }
    return BenchResult(**(values | changes))


class FakeContestant:
    """A contestant that is reached at once, and writes down what happens to it."""

    def __init__(
        self,
        name: str,
        server: ScriptedServer,
        diary: list[str],
        *,
        start_error: AgentError | None = None,
        ended: Callable[[], AgentError | None] = lambda: None,
    ) -> None:
        self.report = ServerReport(name=name)
        self.options = MeasureOptions()
        self._endpoint = endpoint_of(server)
        self._diary = diary
        self._start_error = start_error
        self._ended = ended

    async def open(self) -> Endpoint:
        self._diary.append(f"open {self.report.name}")
        if self._start_error:
            raise self._start_error
        return self._endpoint

    async def close(self) -> None:
        self._diary.append(f"close {self.report.name}")

    def why_it_ended(self, endpoint: Endpoint) -> AgentError | None:
        return self._ended()


def order(samples: Sequence[Sample]) -> list[str]:
    """`a first 1` for each sample: server, prompt, run."""
    return [f"{one.server} {one.prompt_id} {one.run}" for one in samples]
