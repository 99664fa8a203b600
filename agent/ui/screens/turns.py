"""The figures of every turn of the session, as a table and as small plots, and as a file."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agent.ui.entry.files import write_private
from agent.ui.meter import Turn, accepted_length, turn_records
from agent.ui.text import count, duration, rate, share
from agent.ui.widgets.turn_table import TurnTable

_BARS = "▁▂▃▄▅▆▇█"
_NOTHING = "-"
_BESIDE_TABLE = 5  # the padding of the sheet, and a scroll bar
_COLUMNS = (
    "turn",
    "ended",
    "steps",
    "time",
    "decode",
    "prefill",
    "accepted",
    "a pass",
    "cached",
    "new",
    "written",
)


class TurnsScreen(ModalScreen[None]):
    """`export_folder` takes the files; None where none is kept. `now` gives a stamp for their names."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c,f2,ctrl+t", "leave", "Back"),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
        Binding("e", "export('json')", "JSON"),
        Binding("c", "export('csv')", "CSV"),
    ]

    def __init__(self, turns: Sequence[Turn], export_folder: Path | None, now: Callable[[], str]) -> None:
        super().__init__()
        self._turns = turns
        self._folder = export_folder
        self._now = now

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet -tall"):
            yield Static(Content.styled("Turns of this session", "bold"), classes="sheet-title")
            if self._turns:
                with Horizontal(id="plots"):
                    yield from (Static(plot) for plot in _plots(self._turns))
                yield TurnTable(id="turn-table", cursor_type="row")
            else:
                yield Static(Content.styled("No turn has finished yet.", "$quiet"))
            keys = "e saves JSON · c saves CSV · Esc closes" if self._turns else "Esc closes"
            yield Static(Content.styled(keys, "$quiet"), id="turns-foot", classes="sheet-foot")

    def on_mount(self) -> None:
        if not self._turns:
            return
        table = self.query_one(TurnTable)
        names, *rows = _with_something([_COLUMNS, *(_row(turn) for turn in self._turns)])
        widths = [max(len(line[at]) for line in (names, *rows)) for at in range(len(names))]
        if sum(widths) + 2 * len(widths) > self.app.size.width - _BESIDE_TABLE:
            table.cell_padding = 0  # one space before each column is enough to tell them apart
            widths = [width + 1 for width in widths]
        table.add_columns(*(name.rjust(width) for name, width in zip(names, widths, strict=True)))
        for row in rows:
            table.add_row(*(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
        table.move_cursor(row=len(self._turns) - 1)
        table.focus()

    def action_move(self, by: int) -> None:
        if self._turns:
            table = self.query_one(TurnTable)
            table.move_cursor(row=table.cursor_row + by)

    def action_export(self, form: str) -> None:
        foot = self.query_one("#turns-foot", Static)
        if self._folder is None or not self._turns:
            return
        path = self._folder / f"turns-{self._now()}.{form}"
        saved = write_private(path, as_json(self._turns) if form == "json" else as_csv(self._turns))
        foot.update(Content(f"Saved {path}" if saved else f"{path} cannot be written"))

    def action_leave(self) -> None:
        self.dismiss(None)


def _with_something(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Without the columns in which no row has a figure: a narrow terminal has no room for them."""
    shown = [at for at in range(len(lines[0])) if any(line[at] != _NOTHING for line in lines[1:])]
    return [[line[at] for at in shown] for line in lines]


def as_json(turns: Sequence[Turn]) -> str:
    return json.dumps(turn_records(turns), indent=2) + "\n"


def as_csv(turns: Sequence[Turn]) -> str:
    records = turn_records(turns)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return stream.getvalue()


def sparkline(values: Sequence[float | None], width: int = 24) -> str:
    """The last `width` values as bars from zero to the greatest; a dot where there is none."""
    shown = values[-width:]
    top = max((value for value in shown if value is not None), default=0.0)
    if top <= 0:
        return "·" * len(shown)
    steps = len(_BARS) - 1
    return "".join("·" if value is None else _BARS[round(value / top * steps)] for value in shown)


def _plots(turns: Sequence[Turn]) -> list[Content]:
    stats = [turn.stats for turn in turns]
    series: list[tuple[str, list[float | None], Callable[[float], str]]] = [
        ("decode tok/s", [one.decode_rate for one in stats], rate),
        ("acceptance", [one.acceptance_rate for one in stats], share),
        ("cached", [one.cached_share for one in stats], share),
    ]
    plots = []
    for name, values, show in series:
        known = [value for value in values if value is not None]
        if not known:
            continue
        plots.append(
            Content.assemble(
                (f"{name}  ", "$quiet"),
                (show(known[-1]), "bold"),
                "\n",
                (sparkline(values), "$text-primary"),
            )
        )
    return plots


def _row(turn: Turn) -> list[str]:
    stats = turn.stats
    length = accepted_length(stats)
    return [
        str(turn.number),
        turn.reason.replace("_", " "),
        str(turn.steps),
        duration(turn.seconds),
        _NOTHING if stats.decode_rate is None else rate(stats.decode_rate),
        _NOTHING if stats.prefill_rate is None else rate(stats.prefill_rate),
        _NOTHING if stats.acceptance_rate is None else share(stats.acceptance_rate),
        _NOTHING if length is None else f"{length:.1f}",
        count(stats.cached_tokens),
        count(stats.prompt_tokens),
        count(stats.decoded_tokens),
    ]
