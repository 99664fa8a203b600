"""Bars of decode speed as SVG text; colours come from the style sheet of the page."""

from collections.abc import Sequence
from html import escape

from agent.bench.figures import Row

COLOURS = 6
_WIDTH = 900
_LABEL = 210
_VALUE = 190
_BAR = 18
_STEP = 26
_GROUP_HEAD = 26
_GROUP_GAP = 14
_LONGEST_NAME = 30


def speed_chart(rows: Sequence[Row], servers: Sequence[str]) -> str:
    """A group of bars for each prompt, a bar for each server. Empty without any speed."""
    known = [row for row in rows if row.decode_rate]
    highest = max((row.decode_rate.high for row in known if row.decode_rate), default=0.0)
    if not highest:
        return ""
    scale = (_WIDTH - _LABEL - _VALUE) / highest
    parts: list[str] = []
    top = 0.0
    for label in dict.fromkeys(row.label for row in known):
        parts.append(_text(0, top + 17, label, "group"))
        top += _GROUP_HEAD
        for row in (row for row in known if row.label == label):
            parts.append(_bar(row, top, scale, servers.index(row.server) % COLOURS))
            top += _STEP
        top += _GROUP_GAP
    axis = f'<line class="axis" x1="{_LABEL}" y1="0" x2="{_LABEL}" y2="{top:.0f}"/>'
    described = "; ".join(
        f"{row.label}, {row.server}: {row.decode_rate.median:.1f}" for row in known if row.decode_rate
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {top:.0f}" width="{_WIDTH}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>Decode speed in tokens per second: {escape(described)}</title>{axis}{''.join(parts)}</svg>"
    )


def _bar(row: Row, top: float, scale: float, colour: int) -> str:
    rate = row.decode_rate
    if rate is None:
        return ""
    middle = top + _BAR / 2
    end = _LABEL + rate.high * scale
    shapes = [
        _text(_LABEL - 10, middle + 4.5, _short(row.server), "soft", anchor="end"),
        f'<rect class="c{colour}" x="{_LABEL}" y="{top:.1f}" width="{rate.median * scale:.1f}" '
        f'height="{_BAR}" rx="2"/>',
    ]
    if rate.count > 1:
        low = _LABEL + rate.low * scale
        shapes.append(
            f'<path d="M{low:.1f} {middle:.1f}H{end:.1f}M{low:.1f} {middle - 4:.1f}v8'
            f'M{end:.1f} {middle - 4:.1f}v8" fill="none"/>'
        )
    speedup = f", {row.speedup.median:.2f}×" if row.speedup else ""
    value = f"{rate.median:.1f} tok/s{'*' if row.measured_here else ''}{speedup}"
    shapes.append(_text(end + 10, middle + 4.5, value, ""))
    return "".join(shapes)


def _text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
