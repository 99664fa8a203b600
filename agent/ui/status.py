"""What the status bar says, and what it leaves out when the terminal is narrow."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agent.ui.text import count, duration, one_line, rate, share

if TYPE_CHECKING:  # they bring pydantic along, which the input field does not wait for
    from agent.core.handle import SessionFacts
    from agent.ui.meter import Figures

GAP = 2
Tone = Literal[
    "plain", "name", "good", "busy", "bad", "mode-plan", "mode-ask", "mode-accept-edits", "mode-auto"
]

_BAD_STATES = frozenset({"failed", "error", "gone"})
_QUIET_STATES = frozenset({"ready", "running"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One figure. `forms` goes from the longest to the shortest; a higher `weight` stays longer."""

    name: str
    forms: tuple[str, ...]
    weight: int
    tone: Tone = "plain"
    is_right: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A segment in the form that fits."""

    name: str
    text: str
    tone: Tone
    is_right: bool


def segments(
    facts: "SessionFacts | None",
    figures: "Figures",
    server_detail: str = "",
    *,
    has_failed: bool = False,
    lacks: bool = False,
) -> list[Segment]:
    """All that there is to say now, from left to right.

    `has_failed`: no session could be opened. `lacks`: it is not begun, because something is missing.
    """
    found: list[Segment | None] = []
    if facts is None and has_failed:
        return [Segment(name="server", forms=("✗ no session",), weight=90, tone="bad", is_right=False)]
    if facts is None and lacks:
        return [Segment(name="server", forms=("○ not started",), weight=90, tone="plain", is_right=False)]
    if facts is None:
        return [Segment(name="server", forms=("starting",), weight=90, tone="busy", is_right=False)]
    found += [_mode(facts), _model(facts), _server(facts, server_detail)]
    found += [
        _activity(facts, figures),
        None if figures.asks else _prefill(figures),  # in a narrow terminal the question needs its room
        _decode(figures),
        _acceptance(figures),
        _cache(figures),
    ]
    found += [_context(facts), _elapsed(figures), _git(facts)]
    return [segment for segment in found if segment]


def fit(wanted: Iterable[Segment], width: int) -> list[Shown]:
    """Chooses forms so that all fits into `width` cells: first shortens, then drops, the least first."""
    kept = list(wanted)
    forms = {segment.name: 0 for segment in kept}
    while kept and _width(kept, forms) > width:
        shrinkable = [segment for segment in kept if forms[segment.name] < len(segment.forms) - 1]
        if shrinkable:
            forms[min(shrinkable, key=lambda segment: segment.weight).name] += 1
        else:
            kept.remove(min(kept, key=lambda segment: segment.weight))
    _grow(kept, forms, width)
    return [
        Shown(
            name=segment.name,
            text=segment.forms[forms[segment.name]],
            tone=segment.tone,
            is_right=segment.is_right,
        )
        for segment in kept
    ]


def _grow(kept: Sequence[Segment], forms: dict[str, int], width: int) -> None:
    """Gives what dropping left over to longer forms, of the most important segments first."""
    for segment in sorted(kept, key=lambda segment: -segment.weight):
        while forms[segment.name] > 0:
            forms[segment.name] -= 1
            if _width(kept, forms) > width:
                forms[segment.name] += 1
                break


def _width(kept: Sequence[Segment], forms: dict[str, int]) -> int:
    from rich.cells import cell_len

    return sum(cell_len(segment.forms[forms[segment.name]]) for segment in kept) + GAP * (len(kept) - 1)


def _mode(facts: "SessionFacts") -> Segment:
    tones: dict[str, Tone] = {
        "plan": "mode-plan",
        "ask": "mode-ask",
        "accept-edits": "mode-accept-edits",
        "auto": "mode-auto",
    }
    name = facts.mode.replace("-", " ")
    return Segment(name="mode", forms=(name,), weight=100, tone=tones[facts.mode], is_right=False)


def _model(facts: "SessionFacts") -> Segment | None:
    profile, model = one_line(facts.profile, 40), _short_model(facts.model)
    if not model or model == profile:
        return (
            Segment(name="model", forms=(profile,), weight=60, tone="name", is_right=False)
            if profile
            else None
        )
    forms = (f"{profile} · {model}", profile, one_line(profile, 16))
    return Segment(name="model", forms=forms, weight=60, tone="name", is_right=False)


def _short_model(model: str) -> str:
    name = model.replace("\\", "/").rpartition("/")[2]
    return one_line(name.removesuffix(".gguf"), 40)


def _server(facts: "SessionFacts", detail: str) -> Segment | None:
    state = one_line(facts.server, 24)
    if state in _QUIET_STATES:
        return Segment(name="server", forms=("● ready",), weight=48, tone="good", is_right=False)
    if state in _BAD_STATES:
        return Segment(
            name="server", forms=(f"✗ server {state}", "✗ server"), weight=97, tone="bad", is_right=False
        )
    if state == "stopped":
        return Segment(name="server", forms=("○ stopped",), weight=48, is_right=False)
    detail = one_line(detail, 80 if state == "waiting" else 40)
    long = f"◌ {detail if detail.startswith(state) else f'{state} {detail}'.rstrip()}"
    return Segment(name="server", forms=(long, f"◌ {state}"), weight=90, tone="busy", is_right=False)


def _activity(facts: "SessionFacts", figures: "Figures") -> Segment | None:
    """What is waited for: the person, or the first sign of the model. It must not look like nothing."""
    if figures.asks:
        return Segment(name="activity", forms=("waiting for your answer",), weight=98, tone="busy")
    is_silent = bool(facts.waits_for) or (figures.decode_rate is None and not figures.prefill_total)
    is_waiting = figures.is_running and not figures.is_working and is_silent
    if not (is_waiting and facts.server in _QUIET_STATES):
        return None
    why = facts.waits_for
    forms = (f"waiting: {why}", "waiting") if why else ("waiting for the model", "waiting")
    return Segment(name="activity", forms=forms, weight=94, tone="busy")


def _prefill(figures: "Figures") -> Segment | None:
    if figures.prefill_total:
        done, whole = count(figures.prefill_done), count(figures.prefill_total)
        part = share(figures.prefill_done / figures.prefill_total)
        speed = f" {rate(figures.prefill_rate)} tok/s" if figures.prefill_rate else ""
        forms = (f"reading {done}/{whole} {part}{speed}", f"reading {part}")
        return Segment(name="prefill", forms=forms, weight=96, tone="busy")
    if figures.prefill_rate is None:
        return None
    number = rate(figures.prefill_rate)
    return Segment(name="prefill", forms=(f"prefill {number} tok/s", f"prefill {number}"), weight=50)


def _decode(figures: "Figures") -> Segment | None:
    if figures.decode_rate is None:
        return None
    number = ("~" if figures.is_estimate else "") + rate(figures.decode_rate)
    return Segment(name="decode", forms=(f"{number} tok/s",), weight=95)


def _acceptance(figures: "Figures") -> Segment | None:
    if figures.acceptance is None:
        return None
    part = share(figures.acceptance)
    length = figures.accepted_length
    long = f"accepted {part}" + (f" · {length:.1f} a pass" if length else "")
    short = f"accepted {part}" + (f" ×{length:.1f}" if length else "")
    return Segment(name="acceptance", forms=(long, short), weight=85)


def _cache(figures: "Figures") -> Segment | None:
    if not figures.cached and not figures.new:
        return None
    cached, new = count(figures.cached), count(figures.new)
    return Segment(name="cache", forms=(f"{cached} cached + {new} new",), weight=40)


def _context(facts: "SessionFacts") -> Segment | None:
    if not facts.used_tokens and not facts.context_tokens:
        return None
    if not facts.context_tokens:
        return Segment(name="context", forms=(f"context {count(facts.used_tokens)}",), weight=80)
    part = share(facts.used_tokens / facts.context_tokens)
    long = f"context {count(facts.used_tokens)} of {count(facts.context_tokens)}, {part}"
    tone: Tone = "bad" if facts.used_tokens > 0.9 * facts.context_tokens else "plain"
    return Segment(name="context", forms=(long, f"context {part}"), weight=80, tone=tone)


def _elapsed(figures: "Figures") -> Segment | None:
    if figures.elapsed is None:
        return None
    return Segment(name="elapsed", forms=(duration(figures.elapsed),), weight=55)


def _git(facts: "SessionFacts") -> Segment | None:
    if not facts.branch:
        return None
    changed = f" ±{facts.changed_files}" if facts.changed_files else ""
    branch = one_line(facts.branch, 28)
    forms = (f"{branch}{changed}", f"{one_line(facts.branch, 12)}{changed}")
    return Segment(name="git", forms=forms, weight=45, tone="name")
