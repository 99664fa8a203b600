"""What stands where on a screen, compared with what somebody looked at and kept.

`AGENT_UPDATE_PICTURES=1 pytest tests/ui/test_pictures.py` writes them anew; look at the difference before
they are committed. They are rows of text, so that a difference can be read, and a colour that Textual mixes
another way is none; where one differs, the SVG of the screen is written to a temporary folder.
"""

import html
import os
import re
from pathlib import Path

from rich.cells import cell_len

from agent.ui.app import AgentApp

FOLDER = Path(__file__).parent / "pictures"
_TEXT = re.compile(r'<text class="terminal-\d+-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')
_CELL = 12.2


def rows_of(svg: str) -> str:
    """The words of a picture in their places."""
    rows: dict[float, str] = {}
    for x, y, words in _TEXT.findall(svg):
        row, column = rows.get(float(y), ""), round(float(x) / _CELL)
        rows[float(y)] = row + " " * (column - cell_len(row)) + html.unescape(words).replace("\xa0", " ")
    heights = sorted(rows)
    step = 24.4
    count = round((heights[-1] - heights[0]) / step) + 1 if heights else 0
    filled = {round((y - heights[0]) / step): row.rstrip() for y, row in rows.items()}
    return "\n".join(filled.get(at, "") for at in range(count)) + "\n"


def compare(app: AgentApp, name: str, folder: Path) -> None:
    """Raises AssertionError when the screen differs from the picture of that name. `folder` takes an SVG."""
    svg = app.export_screenshot(title="agent")
    path, found = FOLDER / f"{name}.txt", rows_of(svg)
    if os.environ.get("AGENT_UPDATE_PICTURES"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    looked_at = folder / f"{name}.svg"
    looked_at.write_text(svg, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8"), f"see {looked_at}"
