"""The report as one HTML file that loads nothing. What a model or a server wrote is escaped."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from agent.bench.chart import speed_chart
from agent.bench.figures import OVERALL, Row, overall, rows_by_prompt
from agent.bench.result import BenchResult, Sample
from agent.bench.same import parting
from agent.bench.table import NOT_KNOWN, number, percent, remarks, spread

_TEMPLATE = Path(__file__).with_name("page.html")
_COLUMNS = (
    ("server", True), ("prompt", True), ("samples", False), ("prompt tok/s", False), ("decode tok/s", False),
    ("seconds", False), ("drafted", False), ("accepted", False), ("accepted ÷ drafted", False),
    ("accepted ÷ generated", False), ("mean accepted length", False), ("speed-up", False),
)  # fmt: skip


def page(result: BenchResult) -> str:
    """The whole file."""
    rows = rows_by_prompt(result)
    names = [report.name for report in result.servers]
    title = f"Speed of {names[0]}" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} compared"
    parts = {
        "title": escape(title),
        "subtitle": escape(_subtitle(result)),
        "headline": "".join(f'<p class="headline">{line}</p>' for line in _headlines(result)),
        "notices": '<p class="bad">Interrupted; this is what was measured.</p>' * result.is_interrupted,
        "chart": speed_chart(rows, names) or '<p class="bad">Nothing was measured.</p>',
        "table": _table(rows),
        "remarks": "".join(f"<p>{escape(line)}</p>" for line in remarks(result)),
        "positions": _positions(result),
        "outputs": "".join(_outputs(result, *prompt) for prompt in result.prompts),
        "servers": "".join(_server(report.name, report.facts, report.failure) for report in result.servers),
        "settings": _facts("Settings", result.settings) + _facts("Machine", result.machine),
    }
    return Template(_TEMPLATE.read_text("utf-8")).substitute(parts)


def _subtitle(result: BenchResult) -> str:
    count = len(result.measured)
    return (
        f"Suite {result.suite}, {len(result.prompts)} prompts, {count} measured replies, "
        f"{'greedy, ' if result.is_greedy else ''}{result.started}, took {result.seconds:.0f} s"
    )


def _headlines(result: BenchResult) -> Iterable[str]:
    for report in result.servers:
        row = overall(result, report.name)
        if row is None or not row.decode_rate:
            continue
        name = f"<strong>{escape(report.name)}</strong>"
        if row.speedup:
            yield (
                f"{name} writes {number(row.speedup.median)} times as fast as {escape(report.baseline)} "
                f"({number(row.speedup.low)} to {number(row.speedup.high)} over {row.speedup.count} pairs "
                "of replies)."
            )
        elif len(result.servers) == 1:
            yield f"{name} writes {number(row.decode_rate.median, 1)} tokens per second."


def _table(rows: Sequence[Row]) -> str:
    head = "".join(f'<th{_text_class(text)} scope="col">{name}</th>' for name, text in _COLUMNS)
    lines = []
    for row in rows:
        cells = zip(_cells(row), _COLUMNS, strict=True)
        line = "".join(f"<td{_text_class(text)}>{_with_range(cell)}</td>" for cell, (_, text) in cells)
        lines.append(f"<tr{' class=overall' if row.label == OVERALL else ''}>{line}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _with_range(cell: str) -> str:
    """The part in brackets goes below, so that twelve columns fit on a screen."""
    middle, bracket, rest = cell.partition(" (")
    return escape(middle) + (f'<br><span class="range">{escape(rest.rstrip(")*"))}</span>' if bracket else "")


def _text_class(is_text: bool) -> str:
    return ' class="text"' if is_text else ""


def _cells(row: Row) -> tuple[str, ...]:
    mark = "*" if row.measured_here else ""
    return (
        row.server,
        row.label,
        f"{row.samples}{f' ({row.failed} failed)' if row.failed else ''}",
        spread(row.prompt_rate, 1, mark),
        spread(row.decode_rate, 2, mark),
        spread(row.latency, 1),
        NOT_KNOWN if row.drafted is None else str(row.drafted),
        NOT_KNOWN if row.accepted is None else str(row.accepted),
        percent(row.accept_rate),
        percent(row.draft_share) if row.drafted else NOT_KNOWN,
        number(row.mean_length),
        spread(row.speedup, 2, "×") if row.speedup else "",
    )


def _positions(result: BenchResult) -> str:
    """How often each place of a draft was accepted, for servers that count it."""
    lines = []
    for report in result.servers:
        row = overall(result, report.name)
        if row and row.by_position:
            cells = "".join(f"<td>{percent(part)}</td>" for part in row.by_position)
            lines.append(f'<tr><td class="text">{escape(report.name)}</td>{cells}</tr>')
    if not lines:
        return ""
    return (
        "<h3>Accepted by place in the draft</h3>"
        '<p class="soft">Share of all checked drafts whose first, second, third … token was accepted.</p>'
        f'<div class="wide"><table><tbody>{"".join(lines)}</tbody></table></div>'
    )


def _outputs(result: BenchResult, identity: str, title: str, text: str) -> str:
    runs = sorted({sample.run for sample in result.samples if sample.prompt_id == identity})
    blocks = "".join(_run(result, identity, run) for run in runs)
    prompt = f"<details><summary>The prompt</summary><pre>{escape(text)}</pre></details>"
    return f"<h3>{escape(identity)}{f': {escape(title)}' if title else ''}</h3>{prompt}{blocks}"


def _run(result: BenchResult, identity: str, run: int) -> str:
    samples = [
        sample
        for report in result.servers
        for sample in result.of(report.name, identity)
        if sample.run == run
    ]
    written = {sample.server: sample.measurement.text for sample in samples if sample.measurement}
    columns, verdicts = [], []
    for sample in samples:
        baseline = next(report.baseline for report in result.servers if report.name == sample.server)
        mine, theirs = written.get(sample.server), written.get(baseline)
        at = parting(theirs, mine) if mine is not None and theirs is not None else None
        if mine is not None and theirs is not None:
            same = "identical to" if at is None else f"from character {at} on not that of"
            verdicts.append(f"{sample.server}: {same} {baseline}")
        columns.append(_column(sample, at))
    verdict = f' <span class="soft">{escape("; ".join(verdicts))}</span>' if verdicts else ""
    beside = f'<div class="beside">{"".join(columns)}</div>'
    return f"<details><summary>Run {run}{verdict}</summary>{beside}</details>"


def _column(sample: Sample, parts_at: int | None) -> str:
    measurement = sample.measurement
    if measurement is None:
        return f'<div><strong>{escape(sample.server)}</strong><p class="bad">{escape(sample.error)}</p></div>'
    text = measurement.text
    shown = escape(text)
    if parts_at is not None:
        # One character is enough to find the place; a marked rest would be hard to read.
        here = escape(text[parts_at : parts_at + 1]) or "∎"
        shown = f"{escape(text[:parts_at])}<mark>{here}</mark>{escape(text[parts_at + 1 :])}"
    figures = (
        f"{measurement.decoded_tokens} tokens, {measurement.total_seconds:.1f} s, "
        f"{number(measurement.decode_rate, 1)} tok/s, ended by {measurement.finish_reason or 'nothing'}"
    )
    return (
        f'<div><strong>{escape(sample.server)}</strong> <span class="soft">{escape(figures)}</span>'
        f"<pre>{shown}</pre></div>"
    )


def _server(name: str, facts: Mapping[str, Any], failure: str) -> str:
    ended = f'<p class="bad">{escape(failure)}</p>' if failure else ""
    return f"<details><summary>{escape(name)}</summary>{ended}{_facts('', facts)}</details>"


def _facts(title: str, facts: Mapping[str, Any]) -> str:
    lines = "".join(
        f'<tr><td class="text soft">{escape(str(name))}</td><td class="text">{_fact(value)}</td></tr>'
        for name, value in facts.items()
    )
    heading = f"<h3>{title}</h3>" if title else ""
    return f'<div>{heading}<div class="wide"><table><tbody>{lines}</tbody></table></div></div>'


def _fact(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return f"<pre>{escape(json.dumps(value, indent=1, ensure_ascii=False))}</pre>"
    return escape(str(value))
