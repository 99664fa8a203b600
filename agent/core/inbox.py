"""What a person says while a turn runs: for this turn as soon as possible, or for one of its own after it."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.core.messages import Picture


@dataclass(frozen=True, slots=True)
class Said:
    """`text` is what people are shown, `told` what the model gets for it. See `UserMessageAdded.is_note`."""

    text: str
    told: str
    is_note: bool = False
    pictures: tuple[Picture, ...] = ()


class Inbox(Protocol):
    """What the turn loop knows of it: texts that have to be in the next request."""

    async def take(self) -> Sequence[Said]:
        """Hands over what waits for the running turn, oldest first. Each text comes once."""
        ...


class SessionInbox:
    """The queues of a session.

    `notes` are texts of the session's own (the output of a person's command, say): they reach the next
    request before it, but are not a person's draft that could be given back. `changed` is called
    after every change of what a person has queued.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._steering: deque[str] = deque()
        self._follow_ups: deque[str] = deque()
        self._notes: deque[str] = deque()
        self._changed = changed

    @property
    def steering(self) -> tuple[str, ...]:
        return tuple(self._steering)

    @property
    def follow_ups(self) -> tuple[str, ...]:
        return tuple(self._follow_ups)

    def steer(self, text: str) -> None:
        self._steering.append(text)
        self._changed()

    def follow_up(self, text: str) -> None:
        self._follow_ups.append(text)
        self._changed()

    def note(self, text: str) -> None:
        self._notes.append(text)

    def put_back(self, text: str) -> None:
        """Returns a text whose turn came to nothing to the head of its queue."""
        self._follow_ups.appendleft(text)
        self._changed()

    def take_steering(self) -> list[str]:
        """What waits for the running turn, oldest first."""
        taken = list(self._steering)
        if taken:
            self._steering.clear()
            self._changed()
        return taken

    def steer_again(self, texts: Sequence[str]) -> None:
        """Returns what was taken and could not be delivered."""
        if texts:
            self._steering.extendleft(reversed(texts))
            self._changed()

    def take_notes(self) -> list[str]:
        taken = list(self._notes)
        self._notes.clear()
        return taken

    def next_prompt(self) -> str | None:
        """The text of the next turn: what came too late for the last one as one text, then each follow-up."""
        if self._steering:
            text = "\n\n".join(self._steering)
            self._steering.clear()
        elif self._follow_ups:
            text = self._follow_ups.popleft()
        else:
            return None
        self._changed()
        return text

    def take_back(self) -> list[str]:
        """Empties the person's queues; what was for the running turn comes first."""
        taken = [*self._steering, *self._follow_ups]
        self._steering.clear()
        self._follow_ups.clear()
        if taken:
            self._changed()
        return taken
