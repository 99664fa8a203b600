"""What an editor is told while a model reads a prompt or writes a call for long: a card with a number."""

from collections.abc import Callable

from acp.helpers import SessionUpdate, start_tool_call, update_tool_call

from agent.core.events import Prefill, ToolCallDelta

PATIENCE_SECONDS = 3.0
"""So long there is nothing to explain."""

_SECONDS_BETWEEN = 1.0
_CHARACTERS_OF_A_TOKEN = 4


class Waiting:
    """One card for each stretch without a word; none where the first word comes soon."""

    def __init__(self, clock: Callable[[], float], next_id: Callable[[str], str]) -> None:
        self._clock = clock
        self._next_id = next_id
        self._card = ""
        self._characters = 0
        self._since = self._told = clock()

    def begin(self) -> None:
        """A request is made."""
        self._since = self._clock()
        self._characters = 0

    def note(self, event: Prefill | ToolCallDelta) -> list[SessionUpdate]:
        now = self._clock()
        if isinstance(event, ToolCallDelta):
            self._characters += len(event.text)
            title = f"Writing a call, about {self._characters // _CHARACTERS_OF_A_TOKEN:,} tokens"
        else:
            title = f"Reading the prompt: {event.processed:,} of {event.total:,} tokens"
        if now - self._since < PATIENCE_SECONDS:
            return []
        if not self._card:
            self._card, self._told = self._next_id("waiting"), now
            return [start_tool_call(self._card, title, kind="think", status="in_progress")]
        if now - self._told < _SECONDS_BETWEEN:
            return []
        self._told = now
        return [update_tool_call(self._card, title=title)]

    def end(self) -> list[SessionUpdate]:
        """There is a word, a call or an end."""
        self._since, self._characters = self._clock(), 0
        card, self._card = self._card, ""
        return [update_tool_call(card, status="completed")] if card else []
