"""The record of a live session: its file, its originals and its conversation, new or taken up again."""

import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.core.errors import UsageError
from agent.core.messages import Message, SystemMessage
from agent.core.turn import Conversation
from agent.resources import state_folder
from agent.session.catalogue import find_session, remove_session, session_folders, summarise
from agent.session.forked import with_own_pictures
from agent.session.formats import messages_from_events, require_known_format
from agent.session.ledger import SessionLedger
from agent.session.marks import marks_in, summed_up, summed_up_in
from agent.session.store import EVENTS_NAME, SessionKind, SessionStore, is_active, load, secrets_in
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
    store, old = open_store(
        workspace, profile=profile, kind="chat", resume=resume, fork=fork, secrets=secrets, report=report
    )
    try:
        return _record(store, workspace, old, report)
    except BaseException:
        store.close()
        raise


def open_store(
    workspace: Path,
    *,
    profile: str,
    kind: SessionKind,
    resume: str | None = None,
    fork: bool = False,
    task: str = "",
    secrets: Iterable[str] = (),
    report: Callable[[str], None] | None = None,
) -> tuple[SessionStore, tuple[Record, ...]]:
    """The file of a new session, or of one that goes on, with what was recorded before. Reads files.

    Raises:
        UsageError: there is no such session, it is open elsewhere, or a later version made it.
    """

    def begin() -> SessionStore:
        return SessionStore.create(
            state_folder(), workspace, profile=profile, task=task, kind=kind, secrets=secrets, report=report
        )

    if resume is None:
        return begin(), ()
    folder = chosen_session(workspace, resume, allow_open=fork, kind=kind)
    require_known_format(folder / EVENTS_NAME)
    # Locked before it is read: nobody adds to it in between.
    store = begin() if fork else SessionStore.reopen(folder, secrets=secrets, report=report)
    try:
        old = _events_of(folder)
        if fork:
            old = _copied(old, folder, store)
        else:
            from agent.app.files.killed_command import recover_held

            recover_held(folder, workspace)
        return store, old
    except BaseException:
        store.close()
        raise


def _copied(old: tuple[Record, ...], folder: Path, store: SessionStore) -> tuple[Record, ...]:
    """Writes the records of a session into its copy, which leaves nothing behind where that fails."""
    try:
        copied = with_own_pictures(old, store.folder)
    except OSError as error:
        store.close()
        remove_session(store.folder)
        reason = error.strerror or str(error)
        raise UsageError(f"the images of session {folder.name} cannot be copied: {reason}") from error
    for record in copied:
        store.append(record)
    return copied


def fork_of(workspace: Path, resume: str) -> str:
    """Copies a session, so that both go on from there; the id of the copy.

    Raises:
        UsageError: there is no such session, or the copy cannot be written.
    """
    complaints: list[str] = []
    folder = chosen_session(workspace, resume, allow_open=True, kind="run")
    summary = summarise(folder)
    store, _ = open_store(
        workspace,
        profile=summary.profile,
        kind="run" if summary.kind == "run" else "chat",
        task=summary.task,
        resume=folder.name,
        fork=True,
        secrets=secrets_in(os.environ),
        report=complaints.append,
    )
    store.close()
    if complaints:
        remove_session(store.folder)
        raise UsageError(f"session {folder.name} could not be copied: {complaints[0]}")
    return store.id


def profile_of(workspace: Path, resume: str, kind: SessionKind = "chat") -> str:
    """The profile that a session began with, empty when there is no such session. Reads files."""
    try:
        return summarise(chosen_session(workspace, resume, allow_open=True, kind=kind)).profile
    except UsageError:
        return ""


def _record(
    store: SessionStore, workspace: Path, old: tuple[Record, ...], report: Callable[[str], None]
) -> SessionRecord:
    recorded = messages_in(old)
    complete = with_results(recorded or messages_from_events(old))
    # Results that a kill has taken are at the end, so the marks stay right.
    marks = marks_in(old) if recorded else {}
    earlier = summed_up_in(old) if recorded else {}
    conversation = RecordedConversation(messages=complete, write=store.append, marks=marks, earlier=earlier)
    if complete != recorded:
        store.append(history_record(complete, "made complete", marks))
    ledger = SessionLedger(workspace, store.folder, report=report)
    return SessionRecord(store=store, ledger=ledger, conversation=conversation, old=old)


def chosen_session(workspace: Path, name: str, *, allow_open: bool, kind: SessionKind = "chat") -> Path:
    """The session of that id, its beginning or end; `last` is the newest conversation.

    Args:
        allow_open: also one that another program has open.
        kind: of what goes on. A run goes on with the last run too, an interface only with conversations.

    Raises:
        UsageError: there is none, or it is the record of an undo.
    """
    if name != LAST:
        folder = find_session(state_folder(), workspace, name)
        if summarise(folder).kind == "undo":
            raise UsageError(
                f"session {folder.name} is the record of an undo, not a conversation",
                "agent session list shows all sessions",
            )
        return folder
    kinds = {"chat", kind}
    for folder in session_folders(state_folder(), workspace):
        if is_active(folder) and not allow_open:
            continue
        if _has_a_conversation(folder, kinds):
            return folder
    raise UsageError(f"no earlier session in {workspace}", "agent session list shows all sessions")


def _has_a_conversation(folder: Path, kinds: Container[str]) -> bool:
    """Whether somebody said something in a session of such a kind: the header, then the first records."""
    from agent.session.lines import read_lines

    try:
        for number, record in enumerate(read_lines(folder / EVENTS_NAME)):
            if number == 0 and str(record.get("kind")) not in kinds:
                return False
            if record.get("type") in ("user_message", "asked", "history"):
                return True
    except OSError:
        return False
    return False


def _events_of(folder: Path) -> tuple[Record, ...]:
    try:
        # A header that a power cut has destroyed is not among them.
        return tuple(record for record in load(folder / EVENTS_NAME) if record.get("type") != "session")
    except OSError as error:
        raise UsageError(f"cannot read session {folder.name}: {error.strerror or error}") from error
