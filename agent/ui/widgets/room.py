"""How many rows a part that scrolls may take, so that what is around it stays in sight."""

from textual.css.scalar import Unit
from textual.widget import Widget

MOST_SHARE = 0.85
"""Of the rows, for all below the conversation; the style sheet says the same."""
FEWEST_ROWS = 2


def leave_room(panel: Widget, scroll: Widget, most: float = 1.0) -> None:
    """Gives `scroll`, a child of `panel`, only the rows that all else leaves: no field is ever pushed out.

    `most` is the share of the rows of the screen that it gets where there is room enough.
    """
    below = panel.parent
    if not isinstance(below, Widget):
        return
    others = [child for child in (*panel.siblings, *panel.children) if child.display]
    taken = sum(_rows(child) for child in others if child is not scroll) + panel.gutter.height
    margins = panel.styles.margin.height + below.styles.margin.height + scroll.styles.margin.height
    whole = panel.screen.size.height
    rows = max(FEWEST_ROWS, min(int(most * whole), int(MOST_SHARE * whole) - taken - margins))
    limit = scroll.styles.max_height
    if limit is None or limit.value != rows or limit.unit != Unit.CELLS:
        scroll.styles.max_height = rows


def _rows(widget: Widget) -> int:
    return widget.outer_size.height + widget.styles.margin.height
