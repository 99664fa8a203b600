"""What a server has read stays read: the beginning of a project's prompts, conversations that go on later.

The server's own cache does most of it as long as the server runs. This is for what that cannot do: a server
that was started anew, and a prompt that can be read while nobody waits. See docs/warm-start.md.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.app.background import in_background
from agent.app.servers.early import (
    EarlyOutcome,
    EarlyReading,
    HeadNote,
    note_file,
    read_note,
    slot_to_fill,
    states_folder,
    write_note,
)
from agent.app.servers.serving import Serving
from agent.core.events import Event, Prefill
from agent.core.guide import Offer
from agent.core.messages import Message, SystemMessage, UserMessage
from agent.llm.protocol import ToolProtocol, to_wire
from agent.server.record import Endpoint, Record
from agent.server.slot_reading import Progress, Read, Reading, last_task, look_at_slots, rendered
from agent.server.slot_states import (
    TOLERANCE_TOKENS,
    StoredState,
    bytes_per_token,
    delete,
    facts_of,
    find_state,
    folder_of,
    has_room,
    life_of,
    prefill_rate,
    prune,
    restore,
    save,
)
from agent.session.transcript import message_record

_TASK = "(here the task begins)"
_LEAST_SECONDS = 1.0
_BYTES_PER_SECOND = 150e6
"""Of writing or reading a state; measured: 77 MB written in 0.16 to 0.3 s, read in 0.06 to 0.12 s."""
_TIMES_CHEAPER = 4
_UNKNOWN_STATE_BYTES = 256 * 1024**2
_MIB = 1024**2
# Their drafters follow the hidden states of the target, which are not in a saved state.
_DRAFTERS_WITHOUT_STATES = frozenset({"dflash", "mtp", "eagle3", "dspark"})


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning that the first requests of a project share: a chat up to where the task begins."""

    body: Mapping[str, Any]

    @property
    def digest(self) -> str:
        return _digest(self.body)


def head_of(protocol: ToolProtocol, system_text: str, beginning: str) -> Head:
    """The head of requests whose first user message begins with `beginning`."""
    first = UserMessage("\n\n".join(filter(None, [beginning, _TASK])))
    messages = to_wire([SystemMessage(system_text), first])
    return Head({"messages": messages, **protocol.request_fields(Offer())})


def digest_of(messages: Sequence[Message]) -> str:
    """Identifies a conversation by what was said in it."""
    return _digest([message_record(message) for message in messages])


class Warmth:
    """Keeps and brings back what one server of ours has read. For any other server it does nothing."""

    def __init__(
        self, serving: Serving, endpoint: Endpoint, emit: Callable[[Event], None] = lambda _: None
    ) -> None:
        self._serving = serving
        self._emit = emit
        self._record = serving.record_of(endpoint)
        self._limit = serving.loaded.settings.server.state_mib * _MIB
        self._folder = folder_of(states_folder(), endpoint.fingerprint or "")

    @property
    def keeps_states(self) -> bool:
        asked = self._serving.profile.speculation
        able = _DRAFTERS_WITHOUT_STATES.isdisjoint({asked.kind, *asked.also})
        return self._record is not None and self._limit > 0 and able

    async def read_head(
        self, head: Head, early: EarlyReading | None = None, note: Path | None = None
    ) -> None:
        """Has the server read a head that it does not know yet, or brings its state back.

        Args:
            early: a reading that was begun while the program was loaded; it is joined if it is the same.
            note: where to write down what the next run may begin with.
        """
        record = self._record
        if record is None:
            if early is not None:
                early.cancel()
            return
        loop = asyncio.get_running_loop()

        def tell(total: int, cached: int, processed: int) -> None:
            event = Prefill(total=total, cached=cached, processed=processed)
            with suppress(RuntimeError):  # the loop is closed: nobody looks any more
                loop.call_soon_threadsafe(self._emit, event)

        outcome = await _joined(early, head.digest, life_of(record), tell) if early else EarlyOutcome()
        reading = Reading(record)
        try:
            await in_background(lambda: self._read_head(record, head, reading, outcome, note, tell))
        except asyncio.CancelledError:
            reading.cancel()
            raise

    def _read_head(
        self,
        record: Record,
        head: Head,
        reading: Reading,
        outcome: EarlyOutcome,
        path: Path | None,
        tell: Progress,
    ) -> None:
        digest, life = head.digest, life_of(record)
        known = read_note(path) if path else None
        if known is not None and known.digest != digest:
            known = None
        state = find_state(self._folder, digest)
        prompt, read = known.prompt if known else "", outcome.read
        if not outcome.is_there and not (known and known.life == life):
            slots = look_at_slots(record)
            if slots is None or any(slot.is_busy for slot in slots):
                return
            if state is None or not self._brought_back(record, state):
                prompt = prompt or _cut(rendered(record, dict(head.body)))
                read = reading.finish(tell) if prompt and reading.begin(prompt) else None
                if read is None:
                    return
        if read is not None:
            from agent.app.servers.fitting import remember_read  # not needed by who finds its head read

            remember_read(self._serving, read)
            if state is None:
                self._keep_head(record, digest, read)
        if path is not None:
            prompt = prompt or _cut(rendered(record, dict(head.body)))
            left = HeadNote(fingerprint=record.fingerprint, life=life, prompt=prompt, digest=digest)
            write_note(path, left)

    def _keep_head(self, record: Record, digest: str, read: Read) -> None:
        if read.evaluated < 1:
            return
        seconds = read.seconds / read.evaluated * read.tokens
        name = f"head-{digest[:32]}"
        self._keep(record, read.slot, name=name, tokens=read.tokens, seconds=seconds, digest=digest)

    async def keep_session(
        self, session: Path, messages: Sequence[Message], *, tokens: int, rate: float | None
    ) -> None:
        """Keeps the state of a conversation that ends here, if that is worth it.

        Args:
            tokens: of the conversation, as the server counted them last.
            rate: of evaluating a prompt, in tok/s; None: as in the states that are kept of this server.
        """
        record = self._record
        if record is None or not messages or tokens <= 0 or not self.keeps_states:
            return
        digest = digest_of(messages)
        await in_background(lambda: self._keep_session(record, session, digest, tokens, rate))

    def _keep_session(
        self, record: Record, session: Path, digest: str, tokens: int, rate: float | None
    ) -> None:
        rate = rate or prefill_rate(self._folder)
        slots = look_at_slots(record) if rate else None
        seconds = tokens / rate if rate else 0.0
        if slots is None or any(slot.is_busy for slot in slots):
            return
        held = [slot for slot in slots if abs(slot.tokens - tokens) <= TOLERANCE_TOKENS]
        if not held:
            return
        slot = max(held, key=lambda slot: slot.task).number
        self._keep(
            record,
            slot,
            name=session.name,
            tokens=tokens,
            seconds=seconds,
            digest=digest,
            session=str(session),
        )

    async def bring_back(self, messages: Sequence[Message]) -> bool:
        """Has the server read the state of a conversation that goes on; whether it did."""
        record = self._record
        if record is None or not messages:
            return False
        digest = digest_of(messages)
        return await in_background(lambda: self._bring_back(record, digest))

    def _bring_back(self, record: Record, digest: str) -> bool:
        state = find_state(self._folder, digest)
        slots = look_at_slots(record) if state is not None else None
        if state is None or slots is None:
            return False
        held = [slot for slot in slots if abs(slot.tokens - state.tokens) <= TOLERANCE_TOKENS]
        if state.life == life_of(record) and held:
            return False  # it is where it was
        return self._brought_back(record, state)

    def _brought_back(self, record: Record, state: StoredState) -> bool:
        if not self.keeps_states:
            return False
        slot = slot_to_fill(record)
        return slot is not None and restore(record, self._folder, state, slot)

    def _keep(
        self,
        record: Record,
        slot: int,
        *,
        name: str,
        tokens: int,
        seconds: float,
        digest: str,
        session: str = "",
    ) -> None:
        each = bytes_per_token(self._folder)
        size = int(each * tokens) if each else _UNKNOWN_STATE_BYTES
        if (
            not self.keeps_states
            or (each and not self._pays(size, seconds))
            or not has_room(self._folder, size)
        ):
            return
        facts = facts_of(record)
        if facts is None:
            return
        draft = StoredState(
            name=name,
            kind="session" if session else "head",
            tokens=tokens,
            size=0,
            build=facts.build,
            template=facts.template,
            context=facts.context,
            life=life_of(record),
            seconds=round(seconds, 3),
            digest=digest,
            session=session,
        )
        stored = save(record, self._folder, slot, draft)
        if stored is not None and not self._pays(stored.size, seconds):
            delete(self._folder, name)
        prune(states_folder(), self._limit)

    def _pays(self, size: int, seconds: float) -> bool:
        """Whether writing and reading `size` bytes is cheap against `seconds` of evaluating."""
        cost = 2 * size / _BYTES_PER_SECOND
        return size <= self._limit and seconds >= max(_LEAST_SECONDS, _TIMES_CHEAPER * cost)

    async def leave_note(self, path: Path) -> None:
        """Notes at the end of a run that the server still has what it read; see `HeadNote.task`."""
        record = self._record
        if record is not None:
            await in_background(lambda: _note_task(record, path))


async def _joined(early: EarlyReading, digest: str, life: str, tell: Progress) -> EarlyOutcome:
    early.progress = tell
    try:
        outcome = await in_background(lambda: early.wait(digest, life))
    except asyncio.CancelledError:
        early.cancel()
        raise
    return outcome if (outcome.digest, outcome.life) == (digest, life) else EarlyOutcome()


def note_of(workspace: Path, profile: str | None) -> Path:
    """The note of runs in `workspace`, see `early.note_file`."""
    return note_file(workspace, profile, os.environ)


def _note_task(record: Record, path: Path) -> None:
    known, slots = read_note(path), look_at_slots(record)
    if known is not None and slots is not None and known.life == life_of(record):
        write_note(path, replace(known, task=last_task(slots)))


def _digest(facts: Any) -> str:
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _cut(prompt: str | None) -> str:
    """The rendered text before the task; empty where the template does something else with it."""
    before, found, _ = (prompt or "").rpartition(_TASK)
    return before.rstrip("\n") if found else ""
