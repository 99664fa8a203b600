"""The record of a live session: its file, its originals and its conversation, new or taken up again."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.core.errors import UsageError
from agent.core.messages import AssistantMessage, Message, SystemMessage, UserMessage
from agent.core.turn import Conversation
from agent.resources import state_folder
from agent.session.catalogue import find_session, session_folders, summarise
from agent.session.ledger import SessionLedger
from agent.session.marks import marks_in, summed_up, summed_up_in
from agent.session.store import EVENTS_NAME, SessionStore, is_active, load, secrets_in
from agent.session.transcript import history_record, message_record, messages_in, with_results

Record = Mapping[str, Any]
LAST = "last"


@dataclass(slots=True, kw_only=True)
class RecordedConversation(Conversation):
    """A conversation in which each message is on disk before the next request is made.

    `marks` say for each turn how many messages there were before it, see `session.marks`. `earlier` has those
    messages themselves for turns that were summed up, so that a person can still go back to before one.
    """

    write: Callable[[Record], None] = field(default=lambda _: None)
    marks: dict[int, int] = field(default_factory=dict)
    earlier: dict[int, tuple[Message, ...]] = field(default_factory=dict)

    def add(self, message: Message) -> None:
        Conversation.add(self, message)
        self.write(message_record(message))

    def begin_again(self, messages: Sequence[Message], cause: str) -> None:
        """Replaces the whole conversation."""
        Conversation.begin_again(self, messages, cause)
        self.marks = {turn: mark for turn, mark in self.marks.items() if mark <= len(self.messages)}
        self.write(history_record(self.messages, cause, self.marks))

    def shorten(self, messages: Sequence[Message], kept_from: int, cause: str) -> None:
        """Replaces it by a shorter one; what was before each turn that is no longer there is remembered."""
        moved = len(messages) - len(self.messages)
        self.earlier |= summed_up(self.marks, self.messages, kept_from)
        self.marks = {turn: mark + moved for turn, mark in self.marks.items() if mark >= kept_from}
        self.begin_again(messages, cause)

    def amend(self, messages: Sequence[Message]) -> None:
        Conversation.amend(self, messages)
        self.write(history_record(self.messages, "results were cut to fit", self.marks))

    def begin_turn(self, number: int) -> None:
        """Turn `number` begins with the next message."""
        self.marks[number] = len(self.messages)

    def go_back(self, number: int, cause: str) -> None:
        """Takes turn `number` and all after it out of the conversation."""
        begins = isinstance(next(iter(self.messages), None), SystemMessage)
        if number in self.marks:
            kept = self.messages[: max(self.marks[number], int(begins))]
            self.marks = {turn: mark for turn, mark in self.marks.items() if turn < number}
        else:
            kept = list(self.earlier[number]) or self.messages[: int(begins)]
            whole = {turn: tuple(before) for turn, before in self.earlier.items() if turn < number}
            self.marks = {turn: len(one) for turn, one in whole.items() if list(one) == kept[: len(one)]}
        self.earlier = {
            turn: before for turn, before in self.earlier.items() if turn < number and turn not in self.marks
        }
        self.begin_again(kept, cause)

    def can_go_back(self, number: int) -> bool:
        """Whether what was said before turn `number` is known word for word."""
        return number in self.marks or number in self.earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """What a session writes down. `old` are the records from before it was opened this time."""

    store: SessionStore
    ledger: SessionLedger
    conversation: RecordedConversation
    old: tuple[Record, ...] = ()

    def close(self) -> None:
        """Ends the record; a session in which nothing happened leaves none behind."""
        from agent.session.catalogue import remove_session

        happened = bool(self.conversation.messages) or bool(self.old) or bool(self.ledger.changed_files())
        self.store.append({"type": "closed"})
        self.ledger.close()
        self.store.close()
        if not happened:
            try:
                remove_session(self.store.folder)
            except UsageError:
                return


def open_record(
    workspace: Path,
    *,
    profile: str,
    resume: str | None,
    fork: bool,
    report: Callable[[str], None],
) -> SessionRecord:
    """Starts a session, or goes on with one. Reads files, so call it in a thread.

    Args:
        resume: an id, its beginning or end, or `last` for the newest conversation in this folder.
        fork: go on in a new session that begins as a copy; the old one stays as it is.

    Raises:
        UsageError: there is no such session, or it is open elsewhere.
    """
    secrets = secrets_in(os.environ)
    if resume is None:
        store = SessionStore.create(
            state_folder(), workspace, profile=profile, kind="chat", secrets=secrets, report=report
        )
        return _record(store, workspace, (), report)
    folder = _chosen(workspace, resume, allow_open=fork)
    # Locked before it is read: nobody adds to it in between.
    store = (
        SessionStore.create(
            state_folder(), workspace, profile=profile, kind="chat", secrets=secrets, report=report
        )
        if fork
        else SessionStore.reopen(folder, secrets=secrets, report=report)
    )
    try:
        old = _events_of(folder)
        if fork:
            for record in old:
                store.append(record)
        return _record(store, workspace, old, report)
    except BaseException:
        store.close()
        raise


def profile_of(workspace: Path, resume: str) -> str:
    """The profile that a session began with, empty when there is no such session. Reads files."""
    try:
        return summarise(_chosen(workspace, resume, allow_open=True)).profile
    except UsageError:
        return ""


def _record(
    store: SessionStore, workspace: Path, old: tuple[Record, ...], report: Callable[[str], None]
) -> SessionRecord:
    recorded = messages_in(old)
    complete = with_results(recorded or _best_effort(old))
    # Results that a kill has taken are at the end, so the marks stay right.
    marks = marks_in(old) if recorded else {}
    earlier = summed_up_in(old) if recorded else {}
    conversation = RecordedConversation(messages=complete, write=store.append, marks=marks, earlier=earlier)
    if complete != recorded:
        store.append(history_record(complete, "made complete", marks))
    ledger = SessionLedger(workspace, store.folder, report=report)
    return SessionRecord(store=store, ledger=ledger, conversation=conversation, old=old)


def _chosen(workspace: Path, name: str, *, allow_open: bool) -> Path:
    if name != LAST:
        return find_session(state_folder(), workspace, name)
    for folder in session_folders(state_folder(), workspace):
        if is_active(folder) and not allow_open:
            continue
        if _has_a_conversation(folder):
            return folder
    raise UsageError(f"no earlier session in {workspace}", "agent session list shows all sessions")


def _has_a_conversation(folder: Path) -> bool:
    """Whether a person talked in this session; the header says so, then the first messages."""
    from agent.session.lines import read_lines

    try:
        for number, record in enumerate(read_lines(folder / EVENTS_NAME)):
            if number == 0 and record.get("kind") != "chat":
                return False
            if record.get("type") in ("user_message", "history"):
                return True
    except OSError:
        return False
    return False


def _events_of(folder: Path) -> tuple[Record, ...]:
    try:
        return tuple(load(folder / EVENTS_NAME)[1:])
    except OSError as error:
        raise UsageError(f"cannot read session {folder.name}: {error.strerror or error}") from error


def _best_effort(records: Sequence[Record]) -> list[Message]:
    """The conversation of a run that nobody watched, which is recorded as events only.

    Results are told as text, because the calls that they belong to are not known exactly.
    """
    messages: list[Message] = []
    for record in records:
        kind = record.get("type")
        if kind == "turn_started":
            messages = [SystemMessage("")]
        elif kind == "user_message":
            messages.append(UserMessage(str(record.get("text", ""))))
        elif kind == "assistant_message":
            text = str(record.get("text", ""))
            messages.append(AssistantMessage(text or "(a tool call)", str(record.get("reasoning", ""))))
        elif kind == "tool_finished":
            messages.append(UserMessage(f"Result of {record.get('tool', '')}:\n{record.get('text', '')}"))
        elif kind == "compaction_finished" and record.get("summary"):
            messages = [*messages[: 2 if record.get("opening_kept", True) else 1]]
            messages.append(UserMessage(str(record["summary"])))
    return messages if len(messages) > 1 else []
