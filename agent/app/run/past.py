"""What a run that goes on with an earlier session takes over from it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from agent.app.chat.record import Record, RecordedConversation
from agent.app.chat.sizes import sizes_in
from agent.app.turns.prompt_head import (
    CHANGED_TEXT,
    PromptHead,
    head_in,
    head_record,
    system_to_keep,
    why_changed,
)
from agent.core.messages import Message, SystemMessage
from agent.core.worklog import WorkLog
from agent.session.formats import messages_from_events
from agent.session.marks import marks_in
from agent.session.replay import events_in
from agent.session.transcript import history_record, last_reply_number, messages_in, with_results

_BRANCH = "branch"


@dataclass(frozen=True, slots=True)
class Past:
    """`messages` are those of the earlier conversation; `recorded` of them are in the file word for word.

    `log` has what was done, `head` what their prompt began with, None if nobody noted it. `branch` is the
    one that was worked on, empty if nobody noted it, `began` when the last turn did, in seconds since 1970.
    `requested` is how many of the recorded messages the last request held.
    """

    goes_on: bool = False
    messages: tuple[Message, ...] = ()
    recorded: tuple[Message, ...] = ()
    marks: dict[int, int] = field(default_factory=dict)
    turns: int = 0
    log: WorkLog = field(default_factory=WorkLog)
    head: PromptHead | None = None
    branch: str = ""
    began: float = 0.0
    requested: int = 0

    def news(self, workspace: Path, today: date) -> str:
        """What the model has to know of the time since. Waits for git, so call it in a thread."""
        from agent.app.turns.since import since_the_run  # most runs do not go on with anything

        return since_the_run(workspace, today, self.messages, branch=self.branch, began=self.began)

    @property
    def replies(self) -> int:
        return last_reply_number(self.messages)

    def begin(
        self, system: SystemMessage, head: PromptHead, write: Callable[[Record], None]
    ) -> tuple[RecordedConversation, str]:
        """A conversation behind the earlier one, and why its prompt begins in another way, or "".

        The earlier system text stays where it says of the tools what `head` says. What is not in the file as
        it is now is written there.
        """
        system = system_to_keep(self.messages, self.head, head) or system
        messages = [system, *(one for one in self.messages if not isinstance(one, SystemMessage))]
        if tuple(messages) != self.recorded:
            write(history_record(messages, "a run begins", self.marks))
        if head != self.head:
            write(head_record(head))
        asked = self.recorded[: self.requested]
        requested = len(asked) if asked == tuple(messages[: len(asked)]) else 0
        begun = RecordedConversation(
            messages=messages, write=write, marks=dict(self.marks), requested=requested
        )
        return begun, self._why_broken(system, head)

    def _why_broken(self, system: SystemMessage, head: PromptHead) -> str:
        earlier = [one for one in self.messages if isinstance(one, SystemMessage)]
        if len(self.messages) <= len(earlier):
            return ""
        why = why_changed(self.head, head) if self.head else ""
        return why or (CHANGED_TEXT if earlier[:1] != [system] else "")


def past_of(old: tuple[Record, ...]) -> Past:
    """What there is to take over; an empty one for a new session."""
    if not old:
        return Past()
    recorded = messages_in(old)
    messages = with_results(recorded or messages_from_events(old))
    return Past(
        goes_on=True,
        messages=tuple(messages),
        recorded=tuple(recorded),
        marks=marks_in(old) if recorded else {},
        turns=sum(record.get("type") == "turn_started" for record in old),
        log=WorkLog(events_in(old)),
        head=head_in(old),
        branch=branch_in(old),
        began=_began(old),
        requested=sizes_in(old).requested,
    )


def branch_record(branch: str) -> dict[str, str]:
    """The line of a session file that remembers which branch a run worked on."""
    return {"type": _BRANCH, "branch": branch}


def branch_in(records: Iterable[Record]) -> str:
    """The last branch in a session file, empty where there is none."""
    names = [str(one.get("branch", "")) for one in records if one.get("type") == _BRANCH]
    return names[-1] if names else ""


def _began(records: Iterable[Record]) -> float:
    """When the last turn began, 0 where nobody wrote that down."""
    times = [one.get("started") for one in records if one.get("type") == "turn_started"]
    return next((float(one) for one in reversed(times) if isinstance(one, int | float)), 0.0)
