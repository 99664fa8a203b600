"""Machine-readable output: every event on a line of its own, or one object at the end."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from agent.core.events import Event, TurnFinished, to_record
from agent.core.stats import StepStats


class JsonLinesFront:
    """Writes every event as one line of JSON, ASCII only, so that no character can split a line."""

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def show(self, event: Event) -> None:
        self.write(to_record(event))

    def write(self, record: Mapping[str, Any]) -> None:
        self._output.write(json.dumps(record) + "\n")
        self._output.flush()


def result_record(
    finished: TurnFinished,
    *,
    exit_code: int,
    session_id: str,
    changed: Sequence[str],
    denied: Sequence[str],
    check_passed: bool | None,
    seconds: float,
    commit: str | None,
) -> dict[str, Any]:
    """The object that `--output json` prints, and the last line of `--output jsonl`."""
    return {
        "type": "result",
        "exit_code": exit_code,
        "reason": finished.reason,
        "detail": finished.detail,
        "answer": finished.answer,
        "check_passed": check_passed,
        "files_changed": list(changed),
        "denied": list(denied),
        "commit": commit,
        "session_id": session_id,
        "steps": finished.steps,
        "seconds": round(seconds, 3),
        "stats": stats_record(finished.stats),
    }


def stats_record(stats: StepStats) -> dict[str, Any]:
    return {
        "prompt_tokens": stats.prompt_tokens,
        "cached_tokens": stats.cached_tokens,
        "decoded_tokens": stats.decoded_tokens,
        "prompt_seconds": round(stats.prompt_seconds, 4),
        "decode_seconds": round(stats.decode_seconds, 4),
        "decode_tokens_per_second": _rounded(stats.decode_rate),
        "prefill_tokens_per_second": _rounded(stats.prefill_rate),
        "drafted_tokens": stats.drafted,
        "accepted_tokens": stats.accepted,
        "acceptance_rate": _rounded(stats.acceptance_rate, 4),
        "accepted_length": _rounded(stats.accepted_length),
        "tokens_per_pass": _rounded(stats.tokens_per_pass),
        "accepted_by_position": list(stats.accepted_by_position),
        "cached_share": _rounded(stats.cached_share, 4),
        "source": stats.source,
        "draft_source": stats.draft_source,
        "counted": stats.counted,
    }


def _rounded(value: float | None, digits: int = 2) -> float | None:
    return None if value is None else round(value, digits)
