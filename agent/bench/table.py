"""The report as text for a terminal."""

from collections.abc import Sequence

from agent.bench.figures import Row, Spread, overall, rows_by_prompt
from agent.bench.result import BenchResult
from agent.bench.same import comparisons

NOT_KNOWN = "n/a"
_HEADER = (
    "profile", "prompt", "samples", "prompt_t/s", "pred_t/s", "latency", "draft_n", "accepted",
    "accept_rate", "of_output", "mean_len", "decode_speedup",
)  # fmt: skip
_TEXT_COLUMNS = 2


def table(result: BenchResult) -> str:
    """Rows, then what has to be said about them. Ends with a line break."""
    rows = rows_by_prompt(result)
    lines = _aligned([_HEADER, *(_cells(row) for row in rows)]) if rows else ["nothing was measured"]
    lines += [""] if rows else []
    lines += [*_explanations(result, rows), *_positions(result), *remarks(result)]
    return "\n".join(lines) + "\n"


def remarks(result: BenchResult) -> list[str]:
    """What no table can say: speed that was measured here, identical outputs, failures."""
    here = dict.fromkeys(
        sample.server for sample in result.samples if sample.measurement and sample.measurement.measured_here
    )
    lines = [f"* {', '.join(here)}: the server reports no timings; speed was measured here."] if here else []
    lines += same_outputs(result)
    for report in result.servers:
        if report.failure:
            lines.append(f"{report.name} failed: {report.failure}")
        for sample in result.of(report.name):
            if sample.error and sample.error not in report.failure:
                lines.append(f"{report.name}, {sample.prompt_id}, run {sample.run} failed: {sample.error}")
    return lines + result.notes


def same_outputs(result: BenchResult) -> list[str]:
    """For greedy runs: whether the servers wrote the same."""
    if not result.is_greedy:
        return []
    lines = []
    for one in comparisons(result):
        where = f"{one.prompt_id}: {one.server} and {one.baseline}"
        if one.is_identical:
            lines.append(f"{where} wrote the same, character for character.")
        else:
            mine, theirs = one.around[1], one.around[0]
            lines.append(f"{where} part at character {one.parts_at}: {mine!r} and {theirs!r}.")
    return lines


def _explanations(result: BenchResult, rows: Sequence[Row]) -> list[str]:
    lines = []
    if any(row.samples > 1 for row in rows):
        lines.append("prompt_t/s, pred_t/s and latency are medians; in brackets the lowest and the highest.")
    if any(row.speedup for row in rows):
        names = sorted({report.baseline for report in result.servers if report.baseline})
        lines.append(f"decode_speedup is against {', '.join(names)}: pred_t/s run by run.")
    if any(row.drafted for row in rows):
        lines.append("accept_rate = accepted / draft_n; of_output = accepted / generated tokens.")
    return lines


def _positions(result: BenchResult) -> list[str]:
    """How often each place of a draft was accepted, a line for each server that counts it."""
    lines = []
    for report in result.servers:
        row = overall(result, report.name)
        if row and row.by_position:
            parts = ", ".join(map(percent, row.by_position))
            lines.append(f"{row.server}, drafts whose 1st, 2nd ... token was accepted: {parts}.")
    return lines


def number(value: float | None, digits: int = 2) -> str:
    """`12.34`, or `n/a`."""
    return NOT_KNOWN if value is None else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """`61 %`, or `n/a`."""
    return NOT_KNOWN if value is None else f"{100 * value:.0f} %"


def spread(value: Spread | None, digits: int = 2, unit: str = "") -> str:
    """`12.34 (11.90-12.60)`; without the brackets for a single value."""
    if value is None:
        return NOT_KNOWN
    middle = f"{value.median:.{digits}f}{unit}"
    return middle if value.count < 2 else f"{middle} ({value.low:.{digits}f}-{value.high:.{digits}f})"


def _cells(row: Row) -> tuple[str, ...]:
    mark = "*" if row.measured_here else ""
    failed = f" ({row.failed} failed)" if row.failed else ""
    return (
        row.server,
        row.label,
        f"{row.samples}{failed}",
        spread(row.prompt_rate, 1) + mark,
        spread(row.decode_rate) + mark,
        spread(row.latency, 1, "s"),
        NOT_KNOWN if row.drafted is None else str(row.drafted),
        NOT_KNOWN if row.accepted is None else str(row.accepted),
        percent(row.accept_rate),
        percent(row.draft_share) if row.drafted else NOT_KNOWN,
        number(row.mean_length),
        spread(row.speedup, 2, "x") if row.speedup else "",
    )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column < _TEXT_COLUMNS else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
