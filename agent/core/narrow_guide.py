"""A guide for work that a skill describes: a small model gets the tools of the skill and no others."""

from collections.abc import Collection

from agent.core.events import CompactionFinished, Event, ToolFinished, ToolStarted
from agent.core.guide import Offer


class NarrowGuide:
    """Offers `tools`, and `finish` once one of them has worked: a small model likes to answer unseen.

    One that makes a call a second time has seen all that it will look at, and is left nothing but to answer.
    One that `has_looked` was shown output of commands with its task, and may answer at once. There may be
    no `tools` then.
    """

    def __init__(self, tools: Collection[str], *, has_looked: bool = False) -> None:
        self._tools = frozenset(tools)
        self._has_looked = has_looked
        self._calls: set[str] = set()
        self._repeats = False

    def observe(self, event: Event) -> None:
        if isinstance(event, ToolStarted):
            call = f"{event.tool} {sorted(event.arguments.items())}"
            self._repeats = self._repeats or call in self._calls
            self._calls.add(call)
        if isinstance(event, CompactionFinished) and event.summary:
            self._calls.clear()  # what they showed is gone
            self._repeats = False
        if isinstance(event, ToolFinished) and event.outcome == "ok":
            self._has_looked = True

    def offer(self) -> Offer:
        if self._has_looked and self._repeats:
            return Offer(tools=frozenset({"finish"}), plain=True)
        return Offer(tools=self._tools | {"finish"} if self._has_looked else self._tools, plain=True)

    def cue(self) -> str:
        return ""

    def is_solved(self) -> bool:
        """Nothing here can tell."""
        return False
