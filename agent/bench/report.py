"""Writes what a benchmark found: raw replies as they come, then JSON and HTML."""

import json
import os
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agent.bench.figures import rows_by_category, rows_by_prompt
from agent.bench.page import page
from agent.bench.result import BenchResult, Sample
from agent.bench.same import comparisons
from agent.core.errors import AgentError

FORMAT_VERSION = 1


class ReportFolder:
    """A folder of its own for one benchmark: `report.html`, `result.json`, `raw/*.json`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, parent: Path, name: str) -> "ReportFolder":
        """A new folder below `parent`, with a number behind `name` where that is taken.

        Raises:
            AgentError: it cannot be created.
        """
        for number in range(1, 1000):
            path = parent / (name if number == 1 else f"{name}-{number}")
            try:
                (path / "raw").mkdir(mode=0o700, parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise AgentError(f"cannot create the folder {path}: {error.strerror}") from error
            return cls(path)
        raise AgentError(f"cannot find a free name beside {parent / name}")

    def keep(self, sample: Sample) -> Sample:
        """Writes the raw reply of a sample and takes it out of memory.

        Raises:
            AgentError: it cannot be written.
        """
        if sample.measurement is None:
            return sample
        name = re.sub(r"[^\w.-]+", "-", f"{sample.server}-{sample.prompt_id}-{sample.run}").strip("-.")
        path = self.path / "raw" / f"{name}.json"
        write_text(path, json.dumps(dict(sample.measurement.raw), ensure_ascii=False))
        return replace(sample, raw_file=f"raw/{path.name}", measurement=replace(sample.measurement, raw={}))


def as_table(result: BenchResult) -> dict[str, Any]:
    """The result as JSON. `summary` has the rows of SPEED-Bench's client, one for each category."""
    return {
        "format": FORMAT_VERSION,
        "suite": result.suite,
        "started": result.started,
        "seconds": round(result.seconds, 3),
        "interrupted": result.is_interrupted,
        "config": dict(result.settings),
        "machine": dict(result.machine),
        "notes": result.notes,
        "selected_samples": len(result.samples),
        "completed_samples": len(result.measured),
        "failed_samples": len(result.samples) - len(result.measured),
        "profiles": [
            {
                "name": report.name,
                "baseline": report.baseline or None,
                "speculation": report.speculation,
                "failure": report.failure or None,
                "facts": report.facts,
            }
            for report in result.servers
        ],
        "summary": [row.as_table() for row in rows_by_category(result)],
        "by_prompt": [row.as_table() for row in rows_by_prompt(result)],
        "outputs": [one.as_table() for one in comparisons(result)],
        "results": [_sample(sample) for sample in result.samples],
    }


def as_json(result: BenchResult) -> str:
    return json.dumps(as_table(result), indent=2, ensure_ascii=False) + "\n"


def as_html(result: BenchResult) -> str:
    return page(result)


def write_text(path: Path, text: str) -> None:
    """Writes a file as a whole or not at all; into a pipe or a device it writes as it is.

    Raises:
        AgentError: it cannot be written.
    """
    try:
        path = path.resolve()
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_text(text, encoding="utf-8", errors="replace")
            return
        _replace(path, text)
    except OSError as error:
        raise AgentError(
            f"cannot write {path}: {error.strerror}", "choose a place that can be written"
        ) from error


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # Lone surrogates, which a server may send as JSON escapes, are not UTF-8.
        temporary.write_text(text, encoding="utf-8", errors="replace")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _sample(sample: Sample) -> dict[str, Any]:
    table: dict[str, Any] = {
        "profile": sample.server,
        "id": sample.prompt_id,
        "category": sample.category,
        "run": sample.run,
        "ok": sample.measurement is not None,
        "error": sample.error or None,
        "raw_file": sample.raw_file or None,
    }
    one = sample.measurement
    if one is None:
        return table
    figures = {
        name: value for name, value in asdict(one).items() if name not in ("raw", "prompt_id", "category")
    }
    return {
        **table,
        "latency_s": one.total_seconds,
        "prompt_per_second": one.prompt_rate,
        "predicted_per_second": one.decode_rate,
        "accept_rate": one.acceptance,
        "draft_share": one.draft_share,
        **figures,
    }
