"""What a search for the fastest settings has found: as lines, as JSON, and as evidence in a profile."""

import math
from collections.abc import Mapping
from typing import Any

from agent.app.measure.tuned_profile import MARK
from agent.app.measure.tuning_space import describe
from agent.bench.figures import Spread
from agent.bench.table import number, percent, spread
from agent.bench.trial import Changes, Figures, Visit, figures_of
from agent.bench.tune import Search

HEADER = f"{'':>4}{'candidate':<38}{'speed':>9}{'pred_t/s':>10}{'accepted':>10}  "
_REASON_WIDTH = 70


def row(visit: Visit, place: int) -> str:
    """One line of the table that grows while the search goes on. Speeds in tok/s."""
    figures = figures_of([visit])
    cells = (
        f"{number(visit.speed):>9}",
        f"{number(visit.decode_rate):>10}",
        f"{percent(figures.acceptance):>10}",
    )
    return f"{place:>3} {describe(visit.changes):<38}{''.join(cells)}  {_remark(visit)}".rstrip()


def closing_lines(search: Search, is_interrupted: bool = False) -> list[str]:
    """The result in a few lines."""
    lines = [*_remarks(search)]
    if not search.best and (is_interrupted or len(search.candidates()) < 2):
        return [*lines, "Nothing faster was found before the end."]
    if not search.best:
        return [*lines, "Nothing that was tried is faster than the base beyond the noise."]
    base, best, gain = _compared(search)
    lines += [f"base: {_figures(base)}", f"{describe(search.best)}: {_figures(best)}"]
    if search.is_confirmed:
        return [*lines, f"{describe(search.best)} is {_percent(gain)} faster than the base."]
    name = describe(search.best)
    if gain is None or gain <= 1:
        return [*lines, f"{name}, the best in between, is not faster than the base after all."]
    return [*lines, f"{name}, the best so far, seems {_percent(gain)} faster; that may still be noise."]


def evidence(search: Search, base: str, facts: Mapping[str, Any]) -> list[str]:
    """Lines for the head of the profile: what was measured, how and where.

    Args:
        base: name of the profile that was tuned.
        facts: date, command, machine, settings.
    """
    of_base, of_best, gain = _compared(search)
    faster = f", {_percent(gain)} faster" if gain else ""
    lines = [
        f"{MARK[2:]}. Tuning again replaces this file.",
        "",
        *(f"{name}: {value}" for name, value in facts.items()),
        "",
        "tok/s are of whole replies with the time for the prompt; medians, lowest and highest in brackets",
        f"{base}: {_figures(of_base)}",
        f"this: {_figures(of_best)}{faster}",
    ]
    if not search.is_confirmed:
        lines.append("NOT CONFIRMED: the comparison was not complete, or not beyond the noise")
    tried = (f"  {describe(changes)}: {_outcome(search, changes)}" for changes in search.candidates())
    return [*lines, "", "tried:", *tried]


def as_table(
    search: Search, profile: str, command: str, when: str, left_out: Mapping[Changes, str], **facts: Any
) -> dict[str, Any]:
    """Everything as JSON."""
    base, best, gain = _compared(search)
    return {
        "format": 1,
        "profile": profile,
        "command": command,
        "started": when,
        **facts,
        "best": _plain(search.best),
        "confirmed": search.is_confirmed,
        "gain": gain,
        "base_figures": base.as_table(),
        "best_figures": best.as_table(),
        "notes": list(search.notes),
        "visits": [_visit(visit) for visit in search.visits],
        "left_out": [{"changes": _plain(one), "reason": reason} for one, reason in left_out.items()],
    }


def _compared(search: Search) -> tuple[Figures, Figures, float | None]:
    """Base and best by the runs at the end where there are some, by all of them otherwise."""
    mine, base = search.final_runs
    if not base:
        mine, base = ([one for one in search.visits if one.changes == what] for what in (search.best, ()))
    return figures_of(base), figures_of(mine), search.gain


def _remarks(search: Search) -> list[str]:
    failed = [visit for visit in search.visits if visit.failure]
    return [*(f"{describe(one.changes)} failed: {one.failure}" for one in failed), *search.notes]


def _remark(visit: Visit) -> str:
    if visit.failure:
        return f"failed: {_short(visit.failure)}"
    if visit.is_dropped:
        return f"clearly slower after {len(visit.readings)}"
    return {"control": "again", "duel": "head to head", "final": "last comparison"}.get(visit.purpose, "")


def _outcome(search: Search, changes: Changes) -> str:
    visits = [visit for visit in search.visits if visit.changes == changes]
    failure = next((visit.failure for visit in visits if visit.failure), "")
    figures = figures_of(visits)
    if not figures.requests:
        return f"failed: {_short(failure)}"
    whole = any(visit.is_whole for visit in visits)
    dropped = "" if whole else f", dropped after {figures.requests}"
    return f"{_spread(figures.speed)} tok/s in {figures.visits} run{'s' * (figures.visits != 1)}{dropped}"


def _figures(figures: Figures) -> str:
    drafted = f", {percent(figures.acceptance)} of drafts accepted" if figures.drafted else ""
    return (
        f"{_spread(figures.speed)} tok/s (decode {_spread(figures.decode_rate)}){drafted}; "
        f"{figures.visits} runs, {figures.requests} requests"
    )


def _visit(visit: Visit) -> dict[str, Any]:
    return {
        "changes": _plain(visit.changes),
        "purpose": visit.purpose,
        "dropped": visit.is_dropped,
        "failure": visit.failure,
        "seconds": round(visit.seconds, 2),
        "readings": [
            {
                "prompt": one.prompt_id,
                "speed_t_s": round(one.speed, 4),
                "pred_t_s": round(one.decode_rate, 4),
                "prompt_t_s": None if one.prompt_rate is None else round(one.prompt_rate, 3),
                "generated": one.decoded,
                "draft_n": one.drafted,
                "accepted": one.accepted,
            }
            for one in visit.readings
        ],
    }


def _plain(changes: Changes) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in changes}


def _spread(value: Spread | None) -> str:
    return spread(value)


def _percent(gain: float | None) -> str:
    return "" if gain is None or not math.isfinite(gain) else f"{100 * (gain - 1):.0f} %"


def _short(text: str) -> str:
    return text if len(text) <= _REASON_WIDTH else f"{text[: _REASON_WIDTH - 1]}…"
