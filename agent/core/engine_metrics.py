"""What an engine says about itself at `/metrics`, as Prometheus text.

llama.cpp puts `llamacpp:` before the names of its counters, vLLM `vllm:` and SGLang `sglang:`; for drafting
llama.cpp and vLLM use the same words behind it (vllm/v1/spec_decode/metrics.py).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

DRAFTS = "spec_decode_num_drafts_total"
DRAFTED = "spec_decode_num_draft_tokens_total"
ACCEPTED = "spec_decode_num_accepted_tokens_total"
_BY_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"

_SAMPLE = re.compile(r"^(?:(\w+):)?(\w+)(?:\{([^}]*)\})?\s+(\S+)", re.MULTILINE)
_POSITION = re.compile(r'\bposition="(\d{1,3})"')


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """One look. Names are without their prefix; values are over all models and workers.

    `sums` are for counters, `highest` for gauges that every worker of a group reports. `by_position` says
    how often the token at that place of a draft was accepted.
    """

    sums: Mapping[str, float] = field(default_factory=dict)
    highest: Mapping[str, float] = field(default_factory=dict)
    by_position: tuple[int, ...] = ()

    def knows(self, *names: str) -> bool:
        """Whether the engine reports all of them."""
        return all(name in self.sums for name in names)


def read_metrics(text: str, prefix: str = "") -> EngineMetrics:
    """Reads a Prometheus text. What is no number is passed over.

    Args:
        prefix: only names with this one count; empty = any.
    """
    sums: dict[str, float] = {}
    highest: dict[str, float] = {}
    positions: dict[int, float] = {}
    for owner, name, labels, number in _SAMPLE.findall(text):
        value = _finite(number)
        if value is None or (prefix and owner != prefix):
            continue
        position = _POSITION.search(labels)
        if name == _BY_POSITION and position:
            positions[int(position[1])] = positions.get(int(position[1]), 0) + value
        else:
            sums[name] = sums.get(name, 0) + value
            highest[name] = max(value, highest.get(name, value))
    length = max(positions, default=-1) + 1
    return EngineMetrics(sums, highest, tuple(int(positions.get(place, 0)) for place in range(length)))


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
