"""What a front (terminal, editor) holds of a live session: what it may ask for, and where events come from.

A front sends nothing to the loop and knows nothing of servers, tools or git: it calls these methods and
shows what `events` yields. The composition root implements it.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from agent.core.events import Event

SessionMode = Literal["plan", "ask", "accept-edits", "auto"]
MODES: tuple[SessionMode, ...] = ("plan", "ask", "accept-edits", "auto")
"""In the order in which one key goes through them, from the strictest to the loosest."""

AnswerKind = Literal["once", "session", "always", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A person's answer to an `ApprovalRequest`.

    `session` and `always` allow what `rule` covers, for this session or for good; without a `rule` they
    count as `once`. `reason` reaches the model when the call is denied.
    """

    kind: AnswerKind
    rule: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """What is known of a session at this moment, for a status bar. Counts are tokens.

    `model` and `context_tokens` are empty until the server is up. `branch` is empty outside of git.
    `waits_for` says what a running turn waits for, where that is not simply the model. `pieces` are those
    that the server has sent of the running reply, about one for each token; their events may come joined.
    """

    session_id: str
    workspace: str
    profile: str
    mode: SessionMode
    model: str = ""
    context_tokens: int = 0
    used_tokens: int = 0
    branch: str = ""
    changed_files: int = 0
    is_running: bool = False
    server: str = "stopped"
    waits_for: str = ""
    pieces: int = 0


class SessionHandle(Protocol):
    """One conversation that lives as long as its front keeps it."""

    @property
    def facts(self) -> SessionFacts: ...

    def events(self) -> AsyncIterator[Event]:
        """Everything that happens from now on, for one consumer; ends when the session is closed."""
        ...

    def prompt(self, text: str) -> None:
        """Begins a turn; while one runs, the text is queued as `follow_up` does."""
        ...

    def steer(self, text: str) -> None:
        """Text that reaches the running turn after its current tool; begins a turn where none runs."""
        ...

    def follow_up(self, text: str) -> None:
        """Text for a turn of its own after the running one."""
        ...

    def take_back_queued(self) -> list[str]:
        """Empties the queues and gives what was in them, oldest first."""
        ...

    def cancel(self) -> None:
        """Ends the running turn: generation, tools and questions. Returns at once; events tell the rest."""
        ...

    def answer(self, request_id: str, answer: Answer) -> None:
        """Answers an open request; one that is no longer open is ignored."""
        ...

    def set_mode(self, mode: SessionMode) -> None: ...

    async def command(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """A service of the session that is no turn, such as `undo`, `turns` or `rename`.

        Added with the first implementation: `agent.app.services.dispatch` lists the names, what each takes
        and gives.

        Raises:
            UsageError: there is no such service, or the arguments are wrong.
        """
        ...

    async def close(self) -> None:
        """Cancels what runs, records the end and lets go of the server, which may stay up."""
        ...
