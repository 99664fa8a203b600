"""A guide for work that a skill describes: a small model gets the tools of the skill and no others."""

from collections.abc import Collection

from agent.core.events import Event, ToolFinished
from agent.core.guide import Offer


class NarrowGuide:
    """Offers `tools`, and `finish` once one of them has worked: a small model likes to answer unseen."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = frozenset(tools)
        self._has_looked = False

    def observe(self, event: Event) -> None:
        if isinstance(event, ToolFinished) and event.outcome == "ok":
            self._has_looked = True

    def offer(self) -> Offer:
        return Offer(tools=self._tools | {"finish"} if self._has_looked else self._tools)

    def cue(self) -> str:
        return ""

    def is_solved(self) -> bool:
        """Nothing here can tell."""
        return False
