"""What a server tells about drafting beside its reply: counters of `/metrics`, and lines of its log.

llama.cpp prefixes its counters with `llamacpp:`, vLLM with `vllm:`; behind that they are the same words.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from agent.core.engine_metrics import ACCEPTED, DRAFTED, DRAFTS, read_metrics

_LOG_LINE = re.compile(
    r"draft acceptance\s*=\s*[\d.]+ \(\s*(\d+) accepted /\s*(\d+) generated\), mean len =\s*([\d.]+)"
)
"""llama.cpp's `print_timings`: printed once for each request that drafted."""
_LOG_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class DraftCounters:
    """Drafting as counted since the server started, or between two looks.

    `drafts` is how often the target checked a draft; `per_position` how often the token at that place of
    a draft was accepted.
    """

    drafts: int
    drafted: int
    accepted: int
    per_position: tuple[int, ...] = ()

    def since(self, earlier: "DraftCounters") -> "DraftCounters":
        longest = max(len(self.per_position), len(earlier.per_position))
        now, before = (_padded(one.per_position, longest) for one in (self, earlier))
        return DraftCounters(
            self.drafts - earlier.drafts,
            self.drafted - earlier.drafted,
            self.accepted - earlier.accepted,
            tuple(late - early for late, early in zip(now, before, strict=True)),
        )

    @property
    def mean_length(self) -> float | None:
        """Tokens won by one check: what was accepted and the one that the target adds itself."""
        return 1 + self.accepted / self.drafts if self.drafts > 0 else None


def read_counters(metrics: str) -> DraftCounters | None:
    """The counters in a Prometheus text, summed over models; None when it has none about drafting."""
    found = read_metrics(metrics)
    if not found.knows(DRAFTS):
        return None
    drafts, drafted, accepted = (int(found.sums.get(name, 0)) for name in (DRAFTS, DRAFTED, ACCEPTED))
    return DraftCounters(drafts, drafted, accepted, found.by_position)


def log_size(log_file: Path | None) -> int:
    """Bytes of the log now, 0 without one."""
    try:
        return log_file.stat().st_size if log_file else 0
    except OSError:
        return 0


def mean_length_in_log(log_file: Path | None, since: int, drafted: int, accepted: int) -> float | None:
    """The mean length in the last line about a draft with exactly these counts, None without such a line.

    Args:
        since: size of the log before the request, in bytes. A log that is shorter now was begun anew.
    """
    size = log_size(log_file)
    if log_file is None or not size:
        return None
    try:
        with log_file.open("rb") as file:
            file.seek(max(since if size >= since else 0, size - _LOG_BYTES))
            text = file.read(_LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    found = [
        float(mean)
        for accepted_there, drafted_there, mean in _LOG_LINE.findall(text)
        if (int(drafted_there), int(accepted_there)) == (drafted, accepted)
    ]
    return found[-1] if found else None


def _padded(numbers: tuple[int, ...], length: int) -> tuple[int, ...]:
    return numbers + (0,) * (length - len(numbers))
