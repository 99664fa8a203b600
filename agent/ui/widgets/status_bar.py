"""One line at the bottom with the figures of the session."""

import re
from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget

from agent.ui.status import GAP, Segment, Shown, fit

_NUMBER = re.compile(r"[~±×]?\d[\d.,:k/%M]*(?: %)?")
_STYLES = {
    "good": "$text-success",
    "busy": "$text-accent",
    "bad": "bold $text-error",
    "name": "$quiet",
    "mode-plan": "bold $text-primary",
    "mode-ask": "bold $text-success",
    "mode-accept-edits": "bold $text-warning",
    "mode-auto": "bold $text-error",
}


class StatusBar(Widget):
    """Shows as many of the segments as fit; a message takes the whole line until it is cleared."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__(id="status")
        self._segments: Sequence[Segment] = ()
        self._message = ""

    def show(self, segments: Sequence[Segment]) -> None:
        if segments != self._segments:
            self._segments = segments
            self.refresh()

    def say(self, message: str) -> None:
        """Shows `message` instead of the figures; an empty one brings them back."""
        if message != self._message:
            self._message = message
            self.refresh()

    def render(self) -> Content:
        width = self.content_size.width
        if self._message:
            return Content.styled(self._message, "$text-accent").truncate(width, ellipsis=True)
        shown = fit(self._segments, width)
        left = [_styled(item) for item in shown if not item.is_right]
        right = [_styled(item) for item in shown if item.is_right]
        gap = Content(" " * GAP)
        start, end = gap.join(left), gap.join(right)
        middle = width - start.cell_length - end.cell_length
        return Content.assemble(start, " " * max(middle, 0), end)


def _styled(item: Shown) -> Content:
    style = _STYLES.get(item.tone)
    if style is not None:
        return Content.styled(item.text, style)
    content = Content.styled(item.text, "$quiet")
    for match in _NUMBER.finditer(item.text):
        content = content.stylize("$text", match.start(), match.end())
    return content
