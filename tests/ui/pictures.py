"""What stands where on a screen, and what is set apart there, compared with a picture that was kept.

`AGENT_UPDATE_PICTURES=1 pytest tests/ui/test_pictures.py` writes them anew; look at them in a browser before
they are committed. What is compared are the words, their places, and where one way of drawing them ends and
the next begins. The colours are not: another release of Textual may mix them another way, no defect of ours.
"""

import html
import os
import re
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len

from agent.ui.app import AgentApp

FOLDER = Path(__file__).parent / "pictures"
_TEXT = re.compile(r'<text class="terminal-(?:\d+-)?r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')
# The name of a picture is made from its content, and stands in hundreds of places of it.
_NAME = re.compile(r"terminal-\d+")
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_CELL_WIDTH = 12.2
_ROW_HEIGHT = 24.4


class Run(NamedTuple):
    """Words that are drawn one way. `column` in cells, `y` in pixels."""

    y: float
    column: int
    words: str


def runs_of(svg: str) -> list[Run]:
    """All that is written in a picture, from top to bottom and left to right."""
    found = [
        Run(float(y), round(float(x) / _CELL_WIDTH), html.unescape(words).replace("\xa0", " "))
        for x, y, words in _TEXT.findall(svg)
    ]
    return sorted(run for run in found if run.words.strip())


def rows_of(svg: str) -> list[str]:
    """The words of a picture in their places, a bar between two ways of drawing."""
    runs = runs_of(svg)
    rows = [""] * (round((runs[-1].y - runs[0].y) / _ROW_HEIGHT) + 1 if runs else 0)
    for y, column, words in runs:
        at = round((y - runs[0].y) / _ROW_HEIGHT)
        rows[at] += " " * (column - cell_len(rows[at].replace("\x1f", ""))) + "\x1f" + words.rstrip()
    return [row.replace("\x1f", "|") for row in rows]


def slim(svg: str) -> str:
    """A picture without the addresses of fonts, and under a name that does not change with each word."""
    return _NAME.sub("terminal", _FONT.sub("", svg))


def compare(app: AgentApp, name: str, folder: Path) -> None:
    """Raises AssertionError when the screen differs from the picture of that name. `folder` takes it."""
    svg = slim(app.export_screenshot(title="agent"))
    path = FOLDER / f"{name}.svg"
    if os.environ.get("AGENT_UPDATE_PICTURES"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(svg, encoding="utf-8")
    looked_at = folder / path.name
    looked_at.write_text(svg, encoding="utf-8")
    assert rows_of(svg) == rows_of(path.read_text(encoding="utf-8")), f"see {looked_at}"
