"""Whether two servers wrote the same, and where they part."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.bench.result import BenchResult

_CONTEXT_CHARACTERS = 30


@dataclass(frozen=True, slots=True)
class Comparison:
    """One prompt on two servers, run by run. `parts_at` is the first differing character of the first
    pair that differs, counted from 0, None when all are identical; `around` is what stands there.
    """

    server: str
    baseline: str
    prompt_id: str
    pairs: int
    identical: int
    parts_at: int | None
    around: tuple[str, str] = ("", "")

    @property
    def is_identical(self) -> bool:
        return self.identical == self.pairs

    def as_table(self) -> dict[str, Any]:
        return {
            "profile": self.server,
            "baseline": self.baseline,
            "prompt": self.prompt_id,
            "pairs": self.pairs,
            "identical": self.identical,
            "parts_at_character": self.parts_at,
        }


def parting(one: str, other: str) -> int | None:
    """The index of the first character in which two texts differ; None when they are the same."""
    if one == other:
        return None
    shorter = min(len(one), len(other))
    return next((index for index in range(shorter) if one[index] != other[index]), shorter)


def comparisons(result: BenchResult) -> list[Comparison]:
    """For each server with a baseline and each prompt; only what both have measured."""
    found = []
    for report in result.servers:
        if not report.baseline:
            continue
        for prompt_id, _, _ in result.prompts:
            pairs = _pairs(result, report.name, report.baseline, prompt_id)
            if pairs:
                found.append(_compare(report.name, report.baseline, prompt_id, pairs))
    return found


def _pairs(result: BenchResult, server: str, baseline: str, prompt_id: str) -> list[tuple[str, str]]:
    texts = {
        sample.run: sample.measurement.text for sample in result.of(baseline, prompt_id) if sample.measurement
    }
    return [
        (texts[sample.run], sample.measurement.text)
        for sample in result.of(server, prompt_id)
        if sample.measurement and sample.run in texts
    ]


def _compare(server: str, baseline: str, prompt_id: str, pairs: Sequence[tuple[str, str]]) -> Comparison:
    different = [(one, other, at) for one, other in pairs if (at := parting(one, other)) is not None]
    if not different:
        return Comparison(server, baseline, prompt_id, len(pairs), len(pairs), None)
    one, other, at = different[0]
    around = (one[at : at + _CONTEXT_CHARACTERS], other[at : at + _CONTEXT_CHARACTERS])
    return Comparison(server, baseline, prompt_id, len(pairs), len(pairs) - len(different), at, around)
